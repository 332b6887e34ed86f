package lint

import (
	"go/ast"
	"go/token"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestConstants demands one number of nodes from which a collection has an index, and one of the
// attributes that it may have. The packages that name them cannot import them from one another.
func TestConstants(t *testing.T) {
	found := map[string]string{}
	for _, s := range sources(t, token.NewFileSet()) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
				if number, ok := v.Values[0].(*ast.BasicLit); ok {
					found[s.dir+"."+v.Names[0].Name] = number.Value
				}
			}
			return true
		})
	}
	want := found[".minIndexedRows"]
	assert.NotEmpty(t, want)
	assert.Equal(t, want, found["train.fewCandidates"])
	assert.Equal(t, want, found["cmd/flashdb.indexFrom"])
	assert.Equal(t, want, found["cmd/flashdb/internal/browse.indexFrom"])
	assert.NotEmpty(t, found["storage.maxAttributes"])
	assert.Equal(t, found["storage.maxAttributes"], found["cmd/flashdb.mostAttributes"])
}
