package main

import (
	"math"
	"testing"
)

func FuzzParseOracleLine(f *testing.F) {
	for _, s := range []string{
		`{"source": 1, "top": [2, 3], "logit": [3, 2]}`,
		`{"source": -1, "top": [], "logit": []}`,
		`{"source": 1e400, "top": [2], "logit": [1]}`,
		`{"top": [2], "logit": [1]}`,
		`[1]`, `{`, ``, "null",
	} {
		f.Add(s, 1)
	}
	f.Fuzz(func(t *testing.T, s string, k int) {
		line, err := parseOracleLine(s, k)
		if err != nil {
			return
		}
		if len(line.Top) != len(line.Logit) || len(line.Top) < k {
			t.Fatalf("accepted %d rows and %d logits for k = %d", len(line.Top), len(line.Logit), k)
		}
		nodes := &nodeIndex{keys: []string{"a", "", "c"}, first: 1, rows: 3}
		if k >= 0 {
			_, _ = line.truth(nodes, k) // must not panic, whatever the rows are
		}
	})
}

func FuzzParseEmbedding(f *testing.F) {
	for _, s := range []string{"1,2", "[0.5 -1e3]", "1e99", "NaN", ",,", "[", "0x1p-2", "1\t2\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		row, err := parseEmbedding(s)
		if err == nil && len(row) == 0 {
			t.Fatal("an empty embedding was accepted")
		}
	})
}

func FuzzParseProbes(f *testing.F) {
	for _, s := range []string{"1", "5%", "all", "0", "-1%", "1e-300%", "NaN%", "99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := parseProbes(s)
		if err != nil {
			return
		}
		if err := p.Validate(); err != nil || math.IsNaN(p.Share) {
			t.Fatalf("%q was accepted as %+v: %v", s, p, err)
		}
	})
}
