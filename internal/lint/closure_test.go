package lint

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRootClosure holds what a program links that embeds flashdb: no network and no
// Parquet. The server of the control socket is in package control. On Windows
// golang.org/x/sys itself needs net for its types of addresses, but nothing needs more.
func TestRootClosure(t *testing.T) {
	for _, system := range []string{"linux", "darwin", "windows"} {
		t.Run(system, func(t *testing.T) {
			cmd := exec.Command("go", "list", "-deps", module)
			cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH=amd64", "CGO_ENABLED=0")
			out, err := cmd.Output()
			require.NoError(t, err)
			packages := strings.Fields(string(out))
			require.Contains(t, packages, module)
			for _, p := range packages {
				network := p == "net" || strings.HasPrefix(p, "net/")
				if system == "windows" {
					network = strings.HasPrefix(p, "net/http")
				}
				assert.False(t, network, "the root must not import %s", p)
				assert.NotContains(t, p, "parquet", "the root must not import %s", p)
				assert.NotEqual(t, module+"/control", p)
			}
		})
	}
}
