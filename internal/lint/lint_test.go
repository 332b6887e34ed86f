package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	module       = "github.com/flashdb/flashdb"
	maxFileLines = 500
	maxFuncLines = 80
)

// imports is the layering: a package may import these of ours and no others. No package imports one
// that stands in a later row.
var imports = map[string][]string{
	// L0: no package of ours
	"internal/simd": {}, "internal/simd/internal/roofline": {}, "internal/format": {}, "internal/mmap": {}, "internal/failpoint": {}, "internal/codec": {}, "internal/onnx": {}, "internal/wire": {}, "internal/socket": {}, "internal/lint": {}, "internal/output": {}, "internal/attempts": {}, "internal/nearest": {}, "internal/attr": {}, "decoder/internal/fault": {}, "decoder/internal/smooth": {},
	// L1
	"internal/filter":           {"internal/attr", "internal/nearest"},
	"internal/vfs":              {"internal/mmap"},
	"internal/kmeans":           {"internal/simd"},
	"index":                     {},
	"decoder/internal/pairwise": {"decoder/internal/fault"},
	"decoder":                   {"internal/nearest", "internal/simd", "internal/format", "decoder/internal/fault", "decoder/internal/pairwise", "decoder/internal/smooth"},
	"internal/backup":           {"internal/format"},
	"internal/snapshot":         {"internal/format"},
	// L2
	"encoder":         {"decoder", "internal/simd", "internal/format"},
	"decoder/weights": {"decoder", "decoder/internal/fault", "decoder/internal/pairwise", "decoder/internal/smooth", "internal/codec", "internal/onnx"},
	"storage":         {"internal/attr", "internal/vfs", "internal/mmap", "internal/format", "internal/failpoint"},
	"wal":             {"internal/vfs", "internal/format", "internal/failpoint"},
	"index/pq":        {"internal/simd", "internal/kmeans", "internal/format"},
	"internal/delta":  {"index", "internal/simd"},
	"flashlight":      {"index", "decoder", "internal/simd", "internal/format"},
	// L3
	"index/ivf": {"index", "index/pq", "internal/simd", "internal/kmeans", "internal/format", "internal/vfs", "internal/failpoint"},
	// L4
	"internal/calibrate": {"index", "decoder", "flashlight", "internal/format"},
	// L5: the root knows every layer but the kernels
	"": {"internal/socket", "storage", "wal", "index", "index/ivf", "decoder", "encoder", "flashlight", "internal/delta", "internal/attr", "internal/calibrate", "internal/filter", "internal/format", "internal/vfs", "internal/failpoint", "internal/backup", "internal/snapshot", "internal/output", "internal/wire"},
	// beside the root: neither knows the other
	"train":       {"decoder", "encoder", "internal/simd", "internal/format"},
	"train/graph": {"train", "internal/codec"},
	// for developers
	"internal/reliability": {"internal/attempts"}, "internal/dbtest": {"", "decoder"},
	// L6
	"control": {"", "decoder", "internal/socket", "internal/wire"},
	// L7: the command, and what it alone needs
	"cmd/flashdb/internal/browse":     {"", "decoder", "internal/attr", "internal/wire", "cmd/flashdb/internal/show"},
	"cmd/flashdb/internal/prometheus": {""}, "cmd/flashdb/internal/shell": {}, "cmd/flashdb/internal/report": {}, "cmd/flashdb/internal/show": {},
	"cmd/flashdb/internal/terminal": {"cmd/flashdb/internal/show"}, "cmd/flashdb/internal/usage": {"internal/nearest", "cmd/flashdb/internal/show"},
	"cmd/flashdb/internal/parquet": {"internal/codec"},
	"cmd/flashdb":                  {"", "control", "internal/attr", "internal/nearest", "internal/wire", "cmd/flashdb/internal/browse", "cmd/flashdb/internal/prometheus", "cmd/flashdb/internal/shell", "cmd/flashdb/internal/report", "cmd/flashdb/internal/parquet", "cmd/flashdb/internal/show", "cmd/flashdb/internal/terminal", "cmd/flashdb/internal/usage", "decoder", "decoder/weights", "encoder", "flashlight", "index", "internal/codec", "internal/output", "train", "train/graph"},
}

// third lists the modules outside the standard library that non-test code may import, and the
// packages that may.
var third = map[string][]string{
	"go.etcd.io/bbolt":                    {"storage"},
	"github.com/klauspost/compress":       {"wal", "internal/backup", "internal/codec", "cmd/flashdb/internal/parquet", "cmd/flashdb"},
	"github.com/RoaringBitmap/roaring/v2": {"", "storage", "index", "index/ivf", "internal/delta", "internal/filter", "flashlight", "internal/calibrate"},
	"golang.org/x/sys":                    {"internal/simd", "internal/mmap", "internal/vfs"},
	"github.com/spf13/cobra":              {"cmd/flashdb", "cmd/flashdb/internal/usage"},
	"github.com/spf13/pflag":              {"cmd/flashdb", "cmd/flashdb/internal/usage"},
	"golang.org/x/term":                   {"cmd/flashdb/internal/terminal"},
	"github.com/peterh/liner":             {"cmd/flashdb/internal/shell"},
	"github.com/parquet-go/parquet-go":    {"cmd/flashdb/internal/parquet"},
	"github.com/andybalholm/brotli":       {"cmd/flashdb/internal/parquet"},
	"github.com/pierrec/lz4/v4":           {"cmd/flashdb/internal/parquet"},
	"google.golang.org/protobuf":          {"internal/onnx"}, // protowire alone: no generated code, no reflection
}

// source is one parsed Go file of the module.
type source struct {
	path string // relative to the module, with slashes
	dir  string // of path; "" for the root
	test bool
	file *ast.File
}

// sources parses every Go file of the module itself.
func sources(t *testing.T, fset *token.FileSet) []source { return parsed(t, fset, false) }

// parsed parses every Go file of the module, with or without the modules in folders of it.
func parsed(t *testing.T, fset *token.FileSet, nested bool) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var out []source
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if p != root && (strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") || name == "testdata" || !nested && nestedModule(p)) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		file, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		dir := path.Dir(rel)
		if dir == "." {
			dir = ""
		}
		out = append(out, source{path: rel, dir: dir, test: strings.HasSuffix(rel, "_test.go"), file: file})
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, out)
	return out
}

func nestedModule(dir string) bool {
	m, _ := filepath.Glob(filepath.Join(dir, "go.mod"))
	return len(m) > 0
}

func TestLayers(t *testing.T) {
	for _, s := range sources(t, token.NewFileSet()) {
		if s.test {
			continue
		}
		allowed, listed := imports[s.dir]
		if strings.HasPrefix(s.dir, "examples/") || strings.HasPrefix(s.dir, "bench") {
			allowed, listed = []string{"", "control", "decoder", "decoder/weights", "train"}, true
		}
		if !assert.True(t, listed, "%s: package %q is not in the import table: add it to its layer", s.path, s.dir) {
			continue
		}
		for _, imp := range s.file.Imports {
			target, err := strconv.Unquote(imp.Path.Value)
			require.NoError(t, err)
			checkImport(t, s, target, allowed)
		}
	}
}

func checkImport(t *testing.T, s source, target string, allowed []string) {
	if rest, ours := strings.CutPrefix(target, module); ours {
		rest = strings.TrimPrefix(rest, "/")
		assert.True(t, slices.Contains(allowed, rest), "%s: package %q must not import %q", s.path, s.dir, rest)
		return
	}
	if !strings.Contains(strings.SplitN(target, "/", 2)[0], ".") {
		return // standard library
	}
	for mod, users := range third {
		if target == mod || strings.HasPrefix(target, mod+"/") {
			assert.True(t, slices.Contains(users, s.dir), "%s: package %q must not import %q", s.path, s.dir, target)
			return
		}
	}
	assert.Fail(t, "unknown module", "%s imports %q", s.path, target)
}

func TestSizes(t *testing.T) {
	fset := token.NewFileSet()
	for _, s := range parsed(t, fset, true) {
		if s.test || ast.IsGenerated(s.file) {
			continue
		}
		lines := fset.Position(s.file.End()).Line
		assert.LessOrEqual(t, lines, maxFileLines, "%s is too long: split it by noun or phase", s.path)
		for _, decl := range s.file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			n := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
			assert.LessOrEqual(t, n, maxFuncLines, "%s: %s is too long", s.path, fn.Name.Name)
		}
	}
}

func TestPackageComments(t *testing.T) {
	commented := map[string]bool{}
	for _, s := range parsed(t, token.NewFileSet(), true) {
		if !s.test {
			commented[s.dir] = commented[s.dir] || s.file.Doc != nil
		}
	}
	for dir, ok := range commented {
		assert.True(t, ok, "package %q has no package comment", dir)
	}
}

// TestExportedDocs demands a doc comment on everything exported by the packages that a user
// imports.
func TestExportedDocs(t *testing.T) {
	public := []string{"", "control", "decoder", "decoder/weights", "encoder", "flashlight", "index", "index/ivf", "index/pq", "storage", "train", "train/graph", "wal", "remote", "remote/opensearch", "remote/postgres"}
	for _, s := range parsed(t, token.NewFileSet(), true) {
		if s.test || !slices.Contains(public, s.dir) {
			continue
		}
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) {
					assert.NotNil(t, d.Doc, "%s: %s has no doc comment", s.path, d.Name.Name)
				}
			case *ast.GenDecl:
				checkGenDecl(t, s, d)
			}
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	name, ok := typ.(*ast.Ident)
	return ok && name.IsExported()
}

func checkGenDecl(t *testing.T, s source, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() {
				assert.True(t, d.Doc != nil || spec.Doc != nil, "%s: type %s has no doc comment", s.path, spec.Name.Name)
			}
		case *ast.ValueSpec:
			documented := d.Doc != nil || spec.Doc != nil || spec.Comment != nil
			for _, name := range spec.Names {
				if name.IsExported() {
					assert.True(t, documented, "%s: %s has no doc comment", s.path, name.Name)
				}
			}
		}
	}
}
