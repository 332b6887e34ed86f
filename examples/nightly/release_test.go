package nightly_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	root "github.com/flashdb/flashdb"
)

const nights = 40 // users, and items

// writeNight writes what a night's training would leave: user i and item i agree, or, in a bad
// night, are opposed.
func writeNight(t *testing.T, dir string, bad bool) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
	matrix := func(sign float64) string {
		header := fmt.Sprintf("{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 2), }", nights)
		header += strings.Repeat(" ", 118-1-len(header)) + "\n"
		b := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), 0)
		b = append(b, header...)
		for i := range nights {
			a := 2 * math.Pi * float64(i) / nights
			for _, x := range []float64{math.Cos(a), math.Sin(a)} {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(sign*x)))
			}
		}
		return string(b)
	}
	sign := 1.0
	if bad {
		sign = -1
	}
	var users, items, edges strings.Builder
	for i := range nights {
		fmt.Fprintf(&users, "%d\tu%d\n", i, i)
		fmt.Fprintf(&items, "%d\ti%d\n", i, i)
		fmt.Fprintf(&edges, "u%d\ti%d\n", i, i)
	}
	for name, text := range map[string]string{
		"users.npy": matrix(1), "items.npy": matrix(sign), "users.tsv": users.String(), "items.tsv": items.String(),
		"newest.tsv": edges.String(), "dot.json": `{"kind": "dot", "dim": 2}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

// TestPublishNight runs the script for three nights: of the first, of a bad one, which is refused,
// and of a good one, which goes on where a killed run has ended and drops the refused one.
func TestPublishNight(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the script is for sh")
	}
	dir, command := t.TempDir(), build(t)
	db := filepath.Join(dir, "shop.flash")
	flashdb := func(args ...string) string {
		out, err := exec.Command(command, args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	flashdb("create", db, "users", "--dim", "2")
	flashdb("create", db, "items", "--dim", "2")
	files := filepath.Join(dir, "tonight")
	run := func(name string) (int, string) {
		cmd := exec.Command("sh", "publish-night.sh", db, files, name)
		cmd.Env = append(os.Environ(), "FLASHDB="+command, "DECODER=dot.json")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			require.NoError(t, err)
		}
		return cmd.ProcessState.ExitCode(), string(out)
	}
	states := func() string {
		var names []string
		for _, m := range regexp.MustCompile(`"release":"([^"]*)".*"state":"([a-z]*)"`).FindAllStringSubmatch(flashdb("release", "list", db, "--json"), -1) {
			names = append(names, m[1]+" "+m[2])
		}
		return strings.Join(names, ", ")
	}

	code, text := run("night-1")
	require.Equal(t, 1, code, "no files: %s", text)
	writeNight(t, files, false)
	code, text = run("night-1")
	require.Zero(t, code, text)
	require.Equal(t, "1 former, night-1 live", states())
	code, text = run("night-1")
	require.Zero(t, code, text)
	assert.Contains(t, text, "night-1 is live already")

	writeNight(t, files, true)
	require.NoError(t, os.WriteFile(filepath.Join(files, "cut"), []byte("2026-03-01T02:00:00Z\n"), 0o600))
	code, text = run("night-2")
	require.Equal(t, 2, code, text)
	assert.Contains(t, text, "refused by the quality gate")
	require.Equal(t, "1 former, night-1 live, night-2 staged", states())
	assert.Contains(t, flashdb("release", "list", db, "--json"), `"cut":"2026-03-01T02:00:00Z"`)

	writeNight(t, files, false)
	flashdb("release", "stage", db, "night-3", "users", "items") // and then it was killed
	code, text = run("night-3")
	require.Zero(t, code, text)
	require.Equal(t, "night-1 former, night-3 live", states())
	assert.Contains(t, flashdb("predict", db, "items", "u3", "--source-collection", "users", "-k", "1"), "i3")
	flashdb("check", db)

	held, err := root.Open(db, nil)
	require.NoError(t, err)
	code, text = run("night-4")
	assert.Equal(t, 3, code, text)
	require.NoError(t, held.Close())
}

// TestReleaseExamples: the files of the nightly release run the script with a database and a
// folder, and systemd does not run it again after exit codes 2 and 3. TestCronJob looks at those
// for Kubernetes.
func TestReleaseExamples(t *testing.T) {
	script := regexp.MustCompile(`(?m)^(?:ExecStart=|[0-9*/, ]+\s+flashdb\s+.*)/usr/local/bin/publish-night.sh (\S+) (\S+)$`)
	for _, file := range []string{"flashdb-release.cron", "flashdb-release.service"} {
		found := script.FindAllStringSubmatch(read(t, file), -1)
		require.Len(t, found, 1, file)
		assert.Equal(t, "/var/lib/flashdb/shop.flash", found[0][1])
		assert.NotContains(t, found[0][0], "%", "%s: cron and systemd read a percent sign otherwise", file)
	}
	assert.Contains(t, read(t, "flashdb-release.service"), "\nRestartPreventExitStatus=2 3\n")

	container := cronJob(t, "release-cronjob.yaml").Spec.JobTemplate.Spec.Template.Spec.Containers[0]
	assert.Equal(t, []string{"publish-night.sh", "/data/shop.flash", "/models/tonight"}, container.Command)
}

// TestCronLine runs the line of the cron file through sh, as cron does, with paths of its own.
func TestCronLine(t *testing.T) {
	flock, err := exec.LookPath("flock")
	if err != nil {
		t.Skip("flock is not here")
	}
	dir := t.TempDir()
	for file, end := range map[string]string{"flashdb.cron": "rebuild", "flashdb-release.cron": "tonight"} {
		line := regexp.MustCompile(`(?m)^10 \d \* \* \*  flashdb  (.*)$`).FindStringSubmatch(read(t, file))
		require.NotNil(t, line, file)
		script := strings.NewReplacer(
			"flock ", flock+" ", "/run/lock", dir, "/usr/local/bin/publish-night.sh", "echo", "/usr/local/bin/flashdb", "echo",
		).Replace(line[1])
		out, err := exec.Command("sh", "-c", script).CombinedOutput()
		require.NoError(t, err, "%s: %s", script, out)
		assert.Contains(t, string(out), end)
	}
}
