package lint

import (
	"go/token"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// without lists what a package that users embed must not link, directly or by what it imports:
// import paths, and prefixes that end in a slash.
var without = map[string][]string{
	"decoder": {
		"archive/", "compress/", "encoding/csv", "net", "net/", "os/exec",
		module + "/decoder/weights", module + "/internal/codec", module + "/internal/onnx",
		"github.com/klauspost/", "google.golang.org/",
	},
	"": {
		"archive/", "encoding/csv", "net", "net/", module + "/control",
		module + "/decoder/weights", module + "/internal/codec", module + "/internal/onnx", module + "/cmd/",
		"google.golang.org/protobuf/", "github.com/parquet-go/", "github.com/andybalholm/", "github.com/pierrec/",
		"github.com/spf13/", "github.com/peterh/", "golang.org/x/term",
	},
}

// TestClosures asks the go command, as it knows the standard library's imports too.
func TestClosures(t *testing.T) {
	sources(t, token.NewFileSet()) // the test cache sees what a test opens, and not what the go command does
	for dir, banned := range without {
		cmd := exec.Command("go", "list", "-deps", "./"+dir)
		cmd.Dir = filepath.Join("..", "..")
		out, err := cmd.Output()
		require.NoError(t, err)
		deps := strings.Fields(string(out))
		require.NotEmpty(t, deps)
		for _, dep := range deps {
			for _, b := range banned {
				found := dep == b || strings.HasSuffix(b, "/") && strings.HasPrefix(dep, b)
				assert.False(t, found, "package %q links %s", dir, dep)
			}
		}
	}
}
