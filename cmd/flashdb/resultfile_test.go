package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/parquet"
)

// TestResultFileGoesOn ends a run at every point between two pieces: what was acknowledged stays,
// what was not is written again, and nothing twice.
func TestResultFileGoesOn(t *testing.T) {
	plain := func(b []byte) []byte { return b }
	for ext, read := range map[string]func([]byte) []byte{
		"": plain,
		".gz": func(b []byte) []byte {
			z, err := gzip.NewReader(bytes.NewReader(b))
			require.NoError(t, err)
			out, err := io.ReadAll(z)
			require.NoError(t, err)
			return out
		},
		".zst": func(b []byte) []byte {
			z, err := zstd.NewReader(bytes.NewReader(b))
			require.NoError(t, err)
			defer z.Close()
			out, err := io.ReadAll(z)
			require.NoError(t, err)
			return out
		},
	} {
		name := filepath.Join(t.TempDir(), "out"+ext)
		f, err := openResultFile(name, "request", false, nil)
		require.NoError(t, err)
		require.NoError(t, f.append([]byte("one\n"), 1))
		require.NoError(t, f.append([]byte("two\n"), 7))
		_, err = f.part.WriteString("torn") // killed between the piece and its state
		require.NoError(t, err)
		require.NoError(t, f.close())
		assert.NoFileExists(t, name)

		_, err = openResultFile(name, "another request", false, nil)
		require.ErrorContains(t, err, "another request")

		f, err = openResultFile(name, "request", false, nil)
		require.NoError(t, err)
		assert.Equal(t, uint32(7), f.next)
		require.NoError(t, f.append([]byte("three\n"), 9))
		require.NoError(t, f.publish())
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, "one\ntwo\nthree\n", string(read(content)), ext)
		assert.NoFileExists(t, name+".part")
		assert.NoFileExists(t, name+".state")
	}
}

func TestResultFileNoticesAShortPart(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out")
	f, err := openResultFile(name, "request", false, nil)
	require.NoError(t, err)
	require.NoError(t, f.append([]byte("one\n"), 1))
	require.NoError(t, f.close())
	require.NoError(t, os.Truncate(name+".part", 2))
	_, err = openResultFile(name, "request", false, nil)
	require.ErrorContains(t, err, "--restart")
	f, err = openResultFile(name, "request", true, nil)
	require.NoError(t, err)
	assert.Zero(t, f.next)
	require.NoError(t, f.close())
}

// TestParquetIsTheSameHoweverOftenItsRunWasKilled ends a run behind every piece and within the
// join.
func TestParquetIsTheSameHoweverOftenItsRunWasKilled(t *testing.T) {
	answer := func(source string, hits ...flashdb.Hit) []byte {
		return appendAnswer(nil, formatParquet, flashdb.Result{Source: source, Hits: hits})
	}
	pieces := [][]byte{
		answer("a", flashdb.Hit{Key: "b", Score: 2, Probability: .88}, flashdb.Hit{Key: "c", Score: -1.5, Probability: .18}),
		answer("nobody is near"),
		append(answer("b", flashdb.Hit{Key: "a"}), answer("c", flashdb.Hit{Key: "a", Score: 1})...),
	}
	dir := t.TempDir()
	write := func(name string, killed bool) []byte {
		name = filepath.Join(dir, name)
		f, err := openResultFile(name, "request", false, joinAnswers)
		require.NoError(t, err)
		for i, piece := range pieces {
			require.NoError(t, f.append(piece, uint32(i+1)))
			if killed {
				require.NoError(t, f.close())
				f, err = openResultFile(name, "request", false, joinAnswers)
				require.NoError(t, err)
			}
		}
		if killed {
			require.NoError(t, os.WriteFile(name+".joined", bytes.Repeat([]byte("torn"), 1<<12), 0o600))
		}
		require.NoError(t, f.publish())
		for _, left := range []string{".part", ".state", ".state.new", ".joined"} {
			assert.NoFileExists(t, name+left)
		}
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		return content
	}
	assert.Equal(t, write("whole", false), write("killed", true))

	table, err := parquet.OpenTable(filepath.Join(dir, "whole"), "", []string{"source", "target", "rank"})
	require.NoError(t, err)
	var rows []string
	for {
		fields, _, err := table.Next()
		if err != nil {
			require.Equal(t, io.EOF, err)
			break
		}
		rows = append(rows, strings.Join(fields, " "))
	}
	require.NoError(t, table.Close())
	assert.Equal(t, []string{"a b 1", "a c 2", "b a 1", "c a 1"}, rows)
}

func TestParquetKeepsKeysThatAreNotText(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out")
	f, err := openResultFile(name, "request", false, joinAnswers)
	require.NoError(t, err)
	require.NoError(t, f.append(appendAnswer(nil, formatParquet, flashdb.Result{Source: "\xff", Hits: []flashdb.Hit{{Key: "b"}}}), 1))
	require.NoError(t, f.publish())
	table, err := parquet.OpenTable(name, "", []string{"source"})
	require.NoError(t, err)
	fields, _, err := table.Next()
	require.NoError(t, err)
	assert.Equal(t, []string{"\xff"}, fields)
	require.NoError(t, table.Close())
}

// TestResultFileBehindItsEnd: a run was killed when its file had its name already.
func TestResultFileBehindItsEnd(t *testing.T) {
	name := filepath.Join(t.TempDir(), "out")
	f, err := openResultFile(name, "request", false, nil)
	require.NoError(t, err)
	require.NoError(t, f.append([]byte("one\n"), 1))
	require.NoError(t, f.close())
	require.NoError(t, os.Rename(f.partName(), name))
	f, err = openResultFile(name, "request", false, nil)
	require.NoError(t, err)
	assert.Zero(t, f.next)
	require.NoError(t, f.close())
}

// TestDamagedPieces damages what a run left: the next one tells it, or makes the same file.
func TestDamagedPieces(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "out.parquet")
	write := func(restart bool) (*resultFile, error) {
		f, err := openResultFile(name, "request", restart, joinAnswers)
		if err != nil || f.next > 0 {
			return f, err
		}
		for i := range 3 {
			hits := []flashdb.Hit{{Key: "a", Score: float32(i), Probability: .5}, {Key: "b", Score: -1}}
			require.NoError(t, f.append(appendAnswer(nil, formatParquet, flashdb.Result{Source: "s", Hits: hits}), uint32(i+1)))
		}
		return f, nil
	}
	f, err := write(false)
	require.NoError(t, err)
	part, err := os.ReadFile(f.partName())
	require.NoError(t, err)
	state, err := os.ReadFile(f.stateName())
	require.NoError(t, err)
	require.NoError(t, f.publish())
	whole, err := os.ReadFile(name)
	require.NoError(t, err)

	again := func(part, state []byte, what string) {
		t.Helper()
		require.NoError(t, os.WriteFile(name+".part", part, 0o600))
		require.NoError(t, os.WriteFile(name+".state", state, 0o600))
		require.NoError(t, os.Remove(name))
		f, err := write(false)
		if err == nil {
			err = f.publish()
		}
		assert.NoFileExists(t, name+".joined", what)
		if err != nil {
			require.ErrorContains(t, err, "--restart", what)
			require.ErrorContains(t, err, name, what)
			require.NoFileExists(t, name, what)
			f, err = write(true)
			require.NoError(t, err, what)
			require.NoError(t, f.publish(), what)
		}
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, whole, got, what)
	}
	for at := range part {
		damaged := bytes.Clone(part)
		damaged[at] ^= 1 << (at % 8)
		again(damaged, state, fmt.Sprintf("byte %d of the pieces", at))
	}
	for at := range state {
		again(part, state[:at], fmt.Sprintf("the state ends after %d bytes", at))
	}
	for _, text := range []string{
		`{"request":"request","next":3,"bytes":-1}`, `{"request":"request","next":3,"bytes":9223372036854775807}`,
		fmt.Sprintf(`{"request":"request","next":3,"bytes":%d}`, len(part)-1),
	} {
		again(part, []byte(text), text)
	}
}
