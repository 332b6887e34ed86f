//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
	"github.com/flashdb/flashdb/internal/attempts"
)

// writers are the commands that write a file, each with what makes it whole for a name with its
// extension; ext is "" if any will do.
var writers = []struct {
	name, ext string
	line      func(file string) []string
	replaces  bool // a file that is there
}{
	{"backup", "", func(f string) []string { return []string{"backup", "x.flash", f} }, true},
	{"predict", "", func(f string) []string {
		return []string{"predict", "x.flash", "c", "--all", "-k", "2", "--format", "jsonl", "-o", f}
	}, true},
	{"predict parquet", "", func(f string) []string {
		return []string{"predict", "x.flash", "c", "--all", "-k", "2", "--format", "parquet", "-o", f}
	}, true},
	{"report", "", func(f string) []string { return []string{"report", "x.flash", "c", "--sources", "2", "-o", f} }, true},
	{"export rows", "", func(f string) []string { return []string{"export", "rows", "x.flash", "c", f, "--format", "jsonl"} }, false},
	{"export rows --keys", "", func(f string) []string {
		return []string{"export", "rows", "x.flash", "c", "rows.npy", "--keys", f}
	}, false},
	{"export links", "", func(f string) []string { return []string{"export", "links", "x.flash", "c", f, "--format", "tsv"} }, false},
	{"export decoder", ".json", func(f string) []string { return []string{"export", "decoder", "x.flash", "c", "d", f} }, false},
}

// outputFixture makes two databases in a new working directory, with a backup of one.
func outputFixture(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	var rows strings.Builder
	for i := range 30 {
		fmt.Fprintf(&rows, "{\"key\": \"n%d\", \"embedding\": [%d, %d]}\n", i, i%7, i%5)
	}
	require.NoError(t, os.WriteFile("rows.jsonl", []byte(rows.String()), 0o600))
	require.NoError(t, os.WriteFile("edges.tsv", []byte("n1\tn2\n"), 0o600))
	require.NoError(t, os.WriteFile("dot.json", []byte(`{"kind": "dot", "dim": 2}`), 0o600))
	for _, line := range []string{
		"create x.flash c --dim 2", "import x.flash c rows.jsonl", "decoder add x.flash c d dot.json", "link x.flash c edges.tsv",
		"rebuild x.flash --force", "create other.flash c --dim 2", "backup other.flash other.zst",
	} {
		code, _, errOut := runLine(strings.Fields(line)...)
		require.Zero(t, code, "%s: %s", line, errOut)
	}
}

// tree lists the files below the working directory with their bytes.
func tree(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			files[path] = fmt.Sprint(d.Type())
			return err
		}
		content, err := os.ReadFile(path)
		files[path] = string(content)
		return err
	}))
	return files
}

func requireSameTree(t *testing.T, before map[string]string) {
	t.Helper()
	after := tree(t)
	for path, content := range after {
		require.Contains(t, before, path)
		require.True(t, before[path] == content, "%s has changed", path)
	}
	require.Len(t, after, len(before))
}

// TestNoOutputIntoADatabase writes with every command to every file and place of a database, by
// every way that leads there.
func TestNoOutputIntoADatabase(t *testing.T) {
	outputFixture(t)
	work, err := os.Getwd()
	require.NoError(t, err)
	segments, err := filepath.Glob("x.flash/wal/*.log")
	require.NoError(t, err)
	require.NotEmpty(t, segments)
	require.NoError(t, os.MkdirAll("far/away", 0o700))
	require.NoError(t, os.MkdirAll("x.flash/index/.deep", 0o700))
	for link, to := range map[string]string{
		"tolink.db": "x.flash/flash.db", "todir": "x.flash/index", "dangling.json": "x.flash/index/dangling.json",
		"two.json": "dangling.json", "far/deep": filepath.Join(work, "x.flash/index/.deep"), "whole.flash": "x.flash",
	} {
		require.NoError(t, os.Symlink(to, link))
	}
	require.NoError(t, os.Link("x.flash/flash.db", "hard.db"))
	places := []struct {
		name  string
		there bool // a file to be replaced
	}{
		{"x.flash/flash.db", true},
		{segments[0], true},
		{"x.flash/index/c/gen-000001.ivf", true},
		{filepath.Join(work, "x.flash/flash.db"), true},
		{"far/../x.flash/flash.db", true},
		{"tolink.db", true},
		{"whole.flash/flash.db", true},
		{"x.flash/new.json", false},
		{"x.flash/index/new.json", false},
		{"x.flash/wal/0000000000000099.log.json", false},
		{"other.flash/new.json", false},
		{"todir/new.json", false},
		{"far/deep/../new.json", false}, // x.flash/index/new.json, not far/new.json
		{"dangling.json", false},
		{"two.json", false},
		{"whole.flash/new.json", false},
	}
	before := tree(t)
	count := 0
	for _, w := range writers {
		for _, place := range places {
			if place.there && w.ext != "" {
				continue // its name is refused
			}
			count++
			code, out, errOut := runLine(w.line(place.name)...)
			require.Equal(t, exitFailed, code, "%s %s", w.name, place.name)
			require.Empty(t, out)
			require.Contains(t, errOut, "lies in the database", "%s %s", w.name, place.name)
			require.Equal(t, 1, strings.Count(errOut, "\n"), errOut)
			requireSameTree(t, before)
		}
		code, _, errOut := runLine(w.line("x.flash")...)
		require.Equal(t, exitFailed, code)
		require.NotContains(t, errOut, "x.flash.", "%s: no temporary file is made", w.name)
		requireSameTree(t, before)
		if w.ext == "" {
			code, _, errOut := runLine(w.line("hard.db")...)
			require.Equal(t, exitFailed, code)
			require.Regexp(t, "lies in the database|exists", errOut, w.name)
			requireSameTree(t, before)
			count++
		}
	}
	for _, place := range places {
		var o, e bytes.Buffer
		run(context.Background(), []string{"shell", "x.flash"}, strings.NewReader(".output "+place.name+"\nstats\n"), &o, &e)
		require.Contains(t, e.String(), "lies in the database", place.name)
		count++
	}
	code, out, errOut := runLine("check", "x.flash")
	require.Zero(t, code, errOut)
	require.NotContains(t, out, "new.json")
	attempts.Count(t, count, "outputs")
}

// TestNoOutputIntoADatabaseByAnotherProcess does the same while the database is open elsewhere,
// when the backup comes over its socket.
func TestNoOutputIntoADatabaseByAnotherProcess(t *testing.T) {
	outputFixture(t)
	db, err := flashdb.Open("x.flash", nil)
	require.NoError(t, err)
	_, err = control.Serve(db, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for _, w := range writers {
		code, _, errOut := runLine(w.line("x.flash/new.json")...)
		require.Equal(t, exitFailed, code, w.name)
		require.Contains(t, errOut, "lies in the database", w.name)
		file := "good" + strings.ReplaceAll(w.name, " ", "") + ".json"
		code, _, errOut = runLine(w.line(file)...)
		require.Zero(t, code, "%s: %s", w.name, errOut)
		require.FileExists(t, file)
		_ = os.Remove("rows.npy")
	}
	for _, file := range []string{"x.flash/new.zst", "other.flash/flash.db"} {
		code, _, errOut := runLine("backup", "x.flash", file)
		require.Equal(t, exitFailed, code)
		require.Contains(t, errOut, "lies in the database")
	}
	strays, err := db.Strays(context.Background())
	require.NoError(t, err)
	require.Empty(t, strays)
}

// TestNoDatabaseInADatabase makes new databases inside of one.
func TestNoDatabaseInADatabase(t *testing.T) {
	outputFixture(t)
	require.NoError(t, os.Symlink("x.flash", "link"))
	require.NoError(t, os.Mkdir("x.flash/empty", 0o700))
	before := tree(t)
	for _, dir := range []string{"x.flash/new", "x.flash/index/a/b/new", "link/new", "x.flash/empty", "link/wal/new"} {
		for _, line := range [][]string{
			{"create", dir, "c", "--dim", "2"},
			{"restore", "other.zst", dir},
			{"snapshot", "other.flash", dir},
			{"snapshot", "x.flash", dir},
			{"demo", "--dir", dir},
		} {
			code, out, errOut := runLine(line...)
			require.Equal(t, exitFailed, code, "%v", line)
			require.NotContains(t, out, "imported", "%v", line)
			require.Contains(t, errOut, "lies in the database", "%v", line)
			requireSameTree(t, before)
		}
	}
}

// TestOutputsReplaceWholly writes over an earlier file, and fails to.
func TestOutputsReplaceWholly(t *testing.T) {
	outputFixture(t)
	require.NoError(t, os.Symlink("target", "link"))
	for _, w := range writers {
		if !w.replaces {
			continue
		}
		require.NoError(t, os.WriteFile("target", []byte("earlier"), 0o640))
		line := w.line("link")
		bad := strings.Split(strings.ReplaceAll(strings.Join(line, " "), " c ", " nobody "), " ")
		if w.name != "backup" {
			code, _, _ := runLine(bad...)
			require.Equal(t, exitFailed, code)
			content, err := os.ReadFile("target")
			require.NoError(t, err)
			require.Equal(t, "earlier", string(content))
		}
		code, _, errOut := runLine(line...)
		require.Zero(t, code, "%s: %s", w.name, errOut)
		content, err := os.ReadFile("target")
		require.NoError(t, err)
		assert.NotContains(t, string(content), "earlier", w.name)
		info, err := os.Lstat("link")
		require.NoError(t, err)
		assert.NotZero(t, info.Mode()&fs.ModeSymlink, "%s: the link stays", w.name)
	}
	left, err := filepath.Glob(".*")
	require.NoError(t, err)
	require.Empty(t, left, "no temporary files")
	for _, pattern := range []string{"*.tmp", "*.part", "*.state", "*.new", "*.joined"} {
		left, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// TestOutputsToDevicesAndPipes writes to what is not a regular file: it gets the bytes that a file
// would, and stays what it is.
func TestOutputsToDevicesAndPipes(t *testing.T) {
	outputFixture(t)
	require.NoError(t, syscall.Mkfifo("pipe.json", 0o600))
	for _, w := range writers {
		if w.ext != "" {
			continue // its spec needs a name of its own
		}
		_ = os.Remove("rows.npy")
		code, _, errOut := runLine(w.line("/dev/null")...)
		if w.name == "predict parquet" {
			require.Equal(t, exitFailed, code)
			require.Contains(t, errOut, "not a regular file")
			continue
		}
		require.Zero(t, code, "%s: %s", w.name, errOut)
		info, err := os.Stat("/dev/null")
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&fs.ModeDevice)

		_ = os.Remove("rows.npy")
		got := make(chan []byte)
		go func() {
			content, _ := os.ReadFile("pipe.json")
			got <- content
		}()
		code, out, errOut := runLine(w.line("pipe.json")...)
		piped := <-got
		require.Zero(t, code, "%s: %s", w.name, errOut)
		_ = os.Remove("rows.npy")
		code, _, errOut = runLine(w.line("file.json")...)
		require.Zero(t, code, "%s: %s", w.name, errOut)
		file, err := os.ReadFile("file.json")
		require.NoError(t, err)
		require.NoError(t, os.Remove("file.json"))
		if w.name == "backup" || w.name == "report" { // with times in them
			assert.InDelta(t, len(file), len(piped), float64(len(file))/4, w.name)
		} else {
			assert.Equal(t, string(file), string(piped), "%s %s", w.name, out)
		}
	}
	require.NoError(t, os.Symlink("x.flash/flash.db", "res.part"))
	code, _, errOut := runLine(writers[1].line("res")...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errOut, "res.part is not a regular file")
	code, _, errOut = runLine("check", "x.flash")
	require.Zero(t, code, errOut)
}
