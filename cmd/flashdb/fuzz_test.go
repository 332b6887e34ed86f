package main

import (
	"bufio"
	"bytes"
	"math"
	"testing"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/parquet"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/codec"
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
		if err := p.Validate(); err != nil || p == (index.Probes{}) || math.IsNaN(p.Share) {
			t.Fatalf("%q was accepted as %+v: %v", s, p, err)
		}
	})
}

// FuzzNames reads a --keys file.
func FuzzNames(f *testing.F) {
	f.Add([]byte("0\ta\tpay\tload\n1\tb\n"), false)
	f.Add([]byte("row,key,tags,payload,@price:number\n1,a,x;y,p,2.5\n0,b,,,\n"), true)
	f.Add([]byte(",name,price\n1,a,2\n"), true)
	f.Add([]byte("key\ttags\na\t[\"x\"]\n"), false)
	f.Fuzz(func(t *testing.T, b []byte, commas bool) {
		name, columns := "names.tsv", codec.Columns{}
		if commas {
			name, columns.Attributes = "names.csv", []string{"price"}
		}
		keys := tableFile{name, "line", func() (tableReader, error) { return codec.ParseTable(name, b) }}
		im := importer{keysFile: &keys, keyColumns: columns}
		if im.loadKeys() != nil {
			return
		}
		for _, n := range im.keys.names {
			if got, ok := im.keys.of(n.row); !ok || got.key != n.key || n.key == "" {
				t.Fatalf("row %d has key %q, and is found as %q", n.row, n.key, got.key)
			}
			if n.beside != nil && len(n.beside.values) != 0 && len(n.beside.values) != len(im.keys.attributes) {
				t.Fatalf("%d values of %d attributes", len(n.beside.values), len(im.keys.attributes))
			}
		}
	})
}

func FuzzReadRecords(f *testing.F) {
	f.Add(appendRecord(nil, flashdb.Result{Source: "a", Hits: []flashdb.Hit{{Key: "b", Score: 1}, {Key: "\xff"}}}))
	f.Add([]byte{0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, b []byte) {
		bytesOfHits := 0
		_ = readRecords(bufio.NewReader(bytes.NewReader(b)), func(h parquet.Hit) error {
			bytesOfHits += len(h.Target) + 9
			return nil
		})
		if bytesOfHits > len(b) {
			t.Fatalf("%d bytes of hits in %d", bytesOfHits, len(b))
		}
	})
}
