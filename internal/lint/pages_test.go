package lint

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	pageLink = regexp.MustCompile(`\]\(([^)#\s]+)`)
	pageTest = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w*)")
)

// pages returns the Markdown pages of the module, nested modules among them, by path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	root := filepath.Join("..", "..")
	require.NoError(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && p != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(p) == ".md" {
			text, err := os.ReadFile(p)
			out[p] = string(text)
			return err
		}
		return nil
	}))
	require.NotEmpty(t, out)
	return out
}

// TestPages demands that what a page links to is there, and the tests that it names.
func TestPages(t *testing.T) {
	tests := map[string]bool{}
	for _, s := range sources(t, token.NewFileSet()) {
		for _, decl := range s.file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && s.test {
				tests[fn.Name.Name] = true
			}
		}
	}
	for page, text := range pages(t) {
		for _, link := range pageLink.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(link[1], "://") {
				_, err := os.Stat(filepath.Join(filepath.Dir(page), link[1]))
				assert.NoError(t, err, "%s links to it", page)
			}
		}
		for _, name := range pageTest.FindAllStringSubmatch(text, -1) {
			assert.True(t, tests[name[1]], "%s names the test %s, which is not there", page, name[1])
		}
	}
}
