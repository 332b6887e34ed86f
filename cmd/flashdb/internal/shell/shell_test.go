package shell

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/peterh/liner"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	tests := []struct {
		line string
		want []string
	}{
		{"", nil},
		{"  \t ", nil},
		{"predict a b -k 5", []string{"predict", "a", "b", "-k", "5"}},
		{"get 'two words' \"and\\ttab\"", []string{"get", "two words", "and\ttab"}},
		{`get "\x00\xff"`, []string{"get", "\x00\xff"}},
		{`get a\ b\\`, []string{"get", `a b\`}},
		{`get pre'mid dle'post`, []string{"get", "premid dlepost"}},
		{`get '' ""`, []string{"get", "", ""}},
		{`get 'a"b' "a'b"`, []string{"get", `a"b`, "a'b"}},
		{"get a#b # the rest", []string{"get", "a#b"}},
		{"# only", nil},
		{"get naïve 世界", []string{"get", "naïve", "世界"}},
	}
	for _, tt := range tests {
		got, err := Split(tt.line)
		require.NoError(t, err, tt.line)
		assert.Equal(t, tt.want, got, tt.line)
	}
}

func TestSplitRefuses(t *testing.T) {
	for line, want := range map[string]string{
		"get 'a":    "the quote ' at column 5 is never closed",
		`get "a`:    `the quote " at column 5 is never closed`,
		`get "a\"`:  "never closed",
		`get "\q"`:  "has an escape that is none",
		`get a\`:    "ends in a",
		`get "\xf"`: "has an escape that is none",
	} {
		_, err := Split(line)
		require.ErrorContains(t, err, want, line)
	}
}

func TestSplitPartial(t *testing.T) {
	tests := []struct {
		line string
		want Partial
	}{
		{"", Partial{nil, "", 0}},
		{"pre", Partial{[]string{}, "pre", 0}},
		{"predict ", Partial{[]string{"predict"}, "", 8}},
		{"predict a", Partial{[]string{"predict"}, "a", 8}},
		{"predict 'two wo", Partial{[]string{"predict"}, "two wo", 8}},
		{`predict "x`, Partial{[]string{"predict"}, "x", 8}},
		{"predict a b", Partial{[]string{"predict", "a"}, "b", 10}},
		{`predict a\`, Partial{[]string{"predict"}, "a", 8}},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.want, SplitPartial(tt.line), "%q", tt.line)
	}
}

// FuzzSplit checks that nothing panics and that quoted words come back.
func FuzzSplit(f *testing.F) {
	for _, line := range []string{"", "a b", `'x' "y\n" z\ w # c`, `"\xff`, `\`, "'", "世 界\u00a0x"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		SplitPartial(line)
		words, err := Split(line)
		if err != nil {
			words = []string{line}
		}
		quoted := make([]string, len(words))
		for i, w := range words {
			quoted[i] = Quote(w)
		}
		again, err := Split(strings.Join(quoted, " "))
		require.NoError(t, err)
		assert.Equal(t, words, again)
	})
}

func TestScript(t *testing.T) {
	var ran [][]string
	var errs strings.Builder
	s := &Shell{
		In:  strings.NewReader("one a\n\n# nothing\nfail\n'open\ntwo\nquit\nnever\n"),
		Err: &errs,
		Run: func(_ context.Context, words []string) error {
			ran = append(ran, words)
			switch words[0] {
			case "fail":
				return errors.New("it failed")
			case "quit":
				return ErrQuit
			}
			return nil
		},
	}
	require.NoError(t, s.Loop(context.Background()))
	assert.Equal(t, [][]string{{"one", "a"}, {"fail"}, {"two"}, {"quit"}}, ran)
	assert.Equal(t, "line 4: it failed\nline 5: the quote ' at column 1 is never closed\n", errs.String())

	s.In = strings.NewReader("fail\none")
	require.EqualError(t, s.Loop(context.Background()), "1 of 2 lines failed")
	s.In = strings.NewReader(strings.Repeat("x", maxLine+1))
	require.ErrorContains(t, s.Loop(context.Background()), "line 1: ")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.In = strings.NewReader("one")
	require.ErrorIs(t, s.Loop(ctx), context.Canceled)
}

func TestCompleter(t *testing.T) {
	s := &Shell{Complete: func(_ context.Context, p Partial) []string {
		assert.Equal(t, []string{"get"}, p.Words)
		assert.Equal(t, "a", p.Last)
		return []string{"a b", "abc", "--all="}
	}}
	head, found, tail := s.completer(context.Background(), "get a --json", 5)
	assert.Equal(t, "get ", head)
	assert.Equal(t, []string{`"a b" `, "abc ", "--all="}, found)
	assert.Equal(t, " --json", tail)
}

func TestHistory(t *testing.T) {
	name := filepath.Join(t.TempDir(), "conf", "history")
	term := liner.NewLiner()
	defer term.Close()
	first, err := openHistory(name, term)
	require.NoError(t, err)
	second, err := openHistory(name, liner.NewLiner())
	require.NoError(t, err)
	for _, line := range []string{"get a", "get a", " put secret", "", "bad \xff", "get b"} {
		first.add(line)
	}
	second.add("get c")
	first.close()
	second.close()
	kept, err := os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, "get a\nget b\nget c\n", string(kept))
	if runtime.GOOS != "windows" {
		info, err := os.Stat(name)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), info.Mode())
	}

	long := strings.Repeat("get something that is long\n", maxHistory/20) + "caf\xe9\nlast\n"
	require.NoError(t, os.WriteFile(name, []byte(long), 0o600))
	third, err := openHistory(name, term)
	require.NoError(t, err)
	third.add("later")
	third.close()
	kept, err = os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, liner.HistoryLimit+1, strings.Count(string(kept), "\n"))
	assert.True(t, strings.HasSuffix(string(kept), "long\nlast\nlater\n"))
	var recalled strings.Builder
	_, err = term.WriteHistory(&recalled)
	require.NoError(t, err)
	assert.Contains(t, recalled.String(), "last\n")

	none, err := openHistory(filepath.Join(name, "below a file"), term)
	require.Error(t, err)
	assert.True(t, none.add("get a"))
}
