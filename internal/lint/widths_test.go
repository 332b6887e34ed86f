package lint

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxTextWidth is how many columns a line of a comment, or of a page, may have; a tab counts as 4.
const maxTextWidth = 100

// TestWidths holds comments that have a line to themselves, and the prose of pages, to one width.
// Preformatted blocks, tables, headings, directives and a single long word may be wider.
func TestWidths(t *testing.T) {
	fset := token.NewFileSet()
	for _, s := range parsed(t, fset, true) {
		if ast.IsGenerated(s.file) {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(s.path)))
		require.NoError(t, err)
		lines := strings.Split(string(text), "\n")
		for _, group := range s.file.Comments {
			for _, c := range group.List {
				at := fset.Position(c.Pos())
				before := lines[at.Line-1][:at.Column-1]
				prose := strings.HasPrefix(c.Text, "// ") && !strings.HasPrefix(c.Text, "//  ")
				if prose && strings.Trim(before, "\t") == "" {
					assert.LessOrEqual(t, 4*len(before)+utf8.RuneCountInString(c.Text), maxTextWidth, "%s:%d: wrap this comment", s.path, at.Line)
				}
			}
		}
	}
	for page, text := range pages(t) {
		if filepath.Base(page) == "cli.md" { // made from the commands
			continue
		}
		fenced := false
		n := 0
		for line := range strings.Lines(text) {
			n++
			line = strings.TrimSuffix(line, "\n")
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			prose := !fenced && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "#")
			if prose && strings.Contains(strings.TrimSpace(line), " ") {
				assert.LessOrEqual(t, utf8.RuneCountInString(line), maxTextWidth, "%s:%d: wrap this line", page, n)
			}
		}
	}
}
