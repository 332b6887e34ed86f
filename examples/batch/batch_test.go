// Package batch_test runs the script and the command of the job on generated data.
package batch_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/assert/yaml"
	"github.com/stretchr/testify/require"
)

// command builds flashdb.
func command(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the script and the job are for a shell")
	}
	name := filepath.Join(t.TempDir(), "flashdb")
	out, err := exec.Command("go", "build", "-o", name, "github.com/flashdb/flashdb/cmd/flashdb").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return name
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		require.NoError(t, err, "%s %v: %s", name, args, failed.Stderr)
	}
	require.NoError(t, err)
	return string(out)
}

// database makes one of n nodes, with an index, links and a decoder.
func database(t *testing.T, flashdb string, n int) (dir string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(3, 5))
	var rows, edges strings.Builder
	for i := range n {
		fmt.Fprintf(&rows, "{\"key\": \"n%d\", \"embedding\": [%.4f, %.4f, %.4f, %.4f]}\n", i, rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64())
		fmt.Fprintf(&edges, "n%d\tn%d\n", i, rng.IntN(n))
	}
	base := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(base, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	dir = filepath.Join(base, "papers.flash")
	run(t, flashdb, "create", dir, "papers", "--dim", "4")
	run(t, flashdb, "import", dir, "papers", file("rows.jsonl", rows.String()))
	run(t, flashdb, "link", dir, "papers", file("edges.tsv", edges.String()))
	run(t, flashdb, "decoder", "add", dir, "papers", "dot", file("dot.json", `{"kind": "dot", "dim": 4}`))
	run(t, flashdb, "rebuild", dir, "--force", "--lists", "64")
	return dir
}

// TestLocal has the script kill one of its processes: the parts are the bytes of a single run.
func TestLocal(t *testing.T) {
	flashdb := command(t)
	dir := database(t, flashdb, 8192)
	cmd := exec.Command("sh", "local.sh", dir, "papers", "10", filepath.Join(t.TempDir(), "work"))
	cmd.Env = append(os.Environ(), "FLASHDB="+flashdb, "OPTIONS=--mode exact")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "killed part 2 when it had answered some sources")
	assert.Contains(t, string(out), "were answered by an earlier run; continuing after them")
	assert.Contains(t, string(out), "the 8 parts, joined, are the bytes of the single run: 8192 sources")
}

// A manifest is what this test looks at of a Job.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Spec       struct {
		CompletionMode string `yaml:"completionMode"`
		Completions    int
		Template       struct {
			Spec struct {
				Containers []struct {
					Env          []struct{ Name, Value string }
					Command      []string
					VolumeMounts []struct {
						Name     string
						ReadOnly bool `yaml:"readOnly"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct{ Name string }
			}
		}
	}
}

// TestJob runs the command of the job for each index, with fewer parts and on a snapshot here.
func TestJob(t *testing.T) {
	text, err := os.ReadFile("job.yaml")
	require.NoError(t, err)
	var m manifest
	require.NoError(t, yaml.Unmarshal(text, &m))
	assert.Equal(t, "batch/v1", m.APIVersion)
	assert.Equal(t, "Job", m.Kind)
	assert.Equal(t, "Indexed", m.Spec.CompletionMode)
	pod := m.Spec.Template.Spec
	c := pod.Containers[0]
	require.Equal(t, "PARTS", c.Env[0].Name)
	assert.Equal(t, fmt.Sprint(m.Spec.Completions), c.Env[0].Value)
	require.Len(t, c.VolumeMounts, 2)
	for i, v := range c.VolumeMounts {
		assert.Equal(t, pod.Volumes[i].Name, v.Name)
		assert.Equal(t, v.Name == "snapshot", v.ReadOnly, v.Name)
	}

	flashdb := command(t)
	dir := database(t, flashdb, 500)
	snap, out := filepath.Join(t.TempDir(), "papers.snap"), t.TempDir()
	run(t, flashdb, "snapshot", dir, snap)
	const parts = 3
	for index := range parts {
		cmd := exec.Command(c.Command[0], c.Command[1:]...)
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(flashdb)+":"+os.Getenv("PATH"),
			"SNAPSHOT="+snap, "OUT="+out, fmt.Sprint("PARTS=", parts), fmt.Sprint("JOB_COMPLETION_INDEX=", index))
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", said)
	}
	files, err := filepath.Glob(filepath.Join(out, "*")) // in order
	require.NoError(t, err)
	require.Len(t, files, parts)
	// Several .zst files, one behind the other, are one, which is read as one.
	joined := filepath.Join(t.TempDir(), "joined.jsonl.zst")
	var all []byte
	for _, name := range files {
		part, err := os.ReadFile(name)
		require.NoError(t, err)
		all = append(all, part...)
	}
	require.NoError(t, os.WriteFile(joined, all, 0o600))
	single := run(t, flashdb, "predict", snap, "papers", "--all", "-k", "100")
	assert.Equal(t, single, unpacked(t, joined))
}

// unpacked returns the text of a .zst file.
func unpacked(t *testing.T, name string) string {
	t.Helper()
	f, err := os.Open(name)
	require.NoError(t, err)
	defer f.Close()
	z, err := zstd.NewReader(f)
	require.NoError(t, err)
	defer z.Close()
	text, err := io.ReadAll(z)
	require.NoError(t, err)
	return string(text)
}
