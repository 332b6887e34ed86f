package storage_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attr"
	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/storage"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// opCases hold one operation of every kind, and the annotations of its encoding's golden: how many
// bytes, and what they are.
var opCases = []struct {
	name  string
	op    storage.Op
	parts []part
}{
	{"create_collection", storage.CreateCollection{UID: 300, Name: "papers", Schema: storage.Schema{Dim: 128, Normalize: true}}, []part{
		{2, "UID 300"}, {7, "name: papers"}, {2, "dim 128"}, {1, "flags: normalize"},
	}},
	{"drop_collection", storage.DropCollection{UID: 1}, []part{{1, "UID 1"}}},
	{"put_node", storage.PutNode{
		UID: 1, ID: 70000, Key: "1706.03762", Row: []float32{1, -0.5, math.MaxFloat32},
		Tags: []string{"cs.CL", "attention"}, Payload: []byte("{}"),
	}, []part{
		{1, "UID 1"},
		{3, "id 70000"},
		{11, "key: 1706.03762"},
		{1, "dim 3"},
		{4, "1"},
		{4, "-0.5"},
		{4, "largest float32"},
		{1, "2 tags"},
		{6, "cs.CL"},
		{10, "attention"},
		{3, "payload: {}"},
	}},
	{"put_node_bare", storage.PutNode{UID: 1, Key: "\xff"}, []part{
		{1, "UID 1"}, {1, "id 0"}, {2, "key"}, {1, "dim 0"}, {1, "no tags"}, {1, "no payload"},
	}},
	{"delete_node", storage.DeleteNode{UID: 1, ID: math.MaxUint32}, []part{{1, "UID 1"}, {5, "id 4294967295"}}},
	{"link", storage.Link{UID: 1, Source: 5, Targets: []uint32{9, 200, 7}}, []part{
		{1, "UID 1"}, {1, "source 5"}, {1, "3 targets"}, {1, "9"}, {2, "200"}, {1, "7"},
	}},
	{"unlink", storage.Unlink{UID: 1, Source: 5, Targets: []uint32{}}, []part{{1, "UID 1"}, {1, "source 5"}, {1, "no targets"}}},
	{"put_decoder", storage.PutDecoder{UID: 1, Name: "cites", Blob: []byte{0xde, 0xc0}}, []part{
		{1, "UID 1"}, {6, "name: cites"}, {3, "blob of 2 bytes"},
	}},
	{"drop_decoder", storage.DropDecoder{UID: 1, Name: "cites"}, []part{{1, "UID 1"}, {6, "name: cites"}}},
	{"set_meta", storage.SetMeta{UID: 1, Name: "from", Value: "ogb"}, []part{{1, "UID 1"}, {5, "name: from"}, {4, "value: ogb"}}},
	{"link_across", storage.Link{UID: 1, Source: 5, To: 300, Targets: []uint32{9, 200}}, []part{
		{1, "UID 1"}, {2, "to UID 300"}, {1, "source 5"}, {1, "2 targets"}, {1, "9"}, {2, "200"},
	}},
	{"unlink_across", storage.Unlink{UID: 300, Source: 5, To: 1, Targets: []uint32{7}}, []part{
		{2, "UID 300"}, {1, "to UID 1"}, {1, "source 5"}, {1, "1 target"}, {1, "7"},
	}},
	{"set_plans", storage.SetPlans{UID: 1, Name: "cites", Blob: []byte{0xca, 0x1f}}, []part{
		{1, "UID 1"}, {6, "name: cites"}, {3, "blob of 2 bytes"},
	}},
	{"set_tags", storage.SetTags{UID: 1, ID: 70000, Tags: []string{"cs.CL", "attention"}}, []part{
		{1, "UID 1"}, {3, "id 70000"}, {1, "2 tags"}, {6, "cs.CL"}, {10, "attention"},
	}},
	{"set_payload", storage.SetPayload{UID: 1, ID: 70000, Payload: []byte("{}")}, []part{
		{1, "UID 1"}, {3, "id 70000"}, {3, "payload: {}"},
	}},
	{"link_related", storage.Link{UID: 1, Source: 5, Relation: "cites", Targets: []uint32{9, 200}}, []part{
		{1, "UID 1"}, {1, "to UID 1"}, {6, "relation: cites"}, {1, "source 5"}, {1, "2 targets"}, {1, "9"}, {2, "200"},
	}},
	{"put_node_with_attributes", storage.PutNode{
		UID: 1, ID: 2, Key: "a", Row: []float32{1},
		Attributes: []attr.Named{{Name: "price", Value: attrOf(1.5)}, {Name: "brand", Value: attrOf("A")}},
	}, []part{
		{1, "UID 1"},
		{1, "id 2"},
		{2, "key: a"},
		{1, "dim 1"},
		{4, "1"},
		{1, "no tags"},
		{1, "no payload"},
		{1, "2 attributes"},
		{6, "name: price"},
		{2, "value of 9 bytes, a number"},
		{8, "1.5, in order"},
		{6, "name: brand"},
		{3, "value of 2 bytes, a string: A"},
	}},
	{"set_attributes", storage.SetAttributes{
		UID: 1, ID: 70000, Set: []attr.Named{{Name: "sold", Value: attrOf(true)}}, Remove: []string{"price"},
	}, []part{
		{1, "UID 1"},
		{3, "id 70000"},
		{1, "1 attribute to set"},
		{5, "name: sold"},
		{2, "value of 9 bytes, a bool"},
		{8, "true"},
		{1, "1 attribute to remove"},
		{6, "name: price"},
	}},
	{"unlink_related", storage.Unlink{UID: 1, Source: 5, To: 300, Relation: "cites", Targets: []uint32{9}}, []part{
		{1, "UID 1"}, {2, "to UID 300"}, {6, "relation: cites"}, {1, "source 5"}, {1, "1 target"}, {1, "9"},
	}},
	{"link_recorded", storage.Link{UID: 300, Source: 5, To: 1, Targets: []uint32{9, 200}, Recorded: 1_700_000_000}, []part{
		{2, "UID 300"}, {5, "time 1700000000"}, {1, "to UID 1"}, {1, "no relation"}, {1, "source 5"}, {1, "2 targets"}, {1, "9"}, {2, "200"},
	}},
	{"link_related_recorded", storage.Link{UID: 1, Source: 5, Relation: "cites", Targets: []uint32{9}, Recorded: 10}, []part{
		{1, "UID 1"}, {1, "time 10"}, {1, "to UID 1"}, {6, "relation: cites"}, {1, "source 5"}, {1, "1 target"}, {1, "9"},
	}},
	{"add_node", storage.AddNode{UID: 1, ID: 70000, Key: "1706.03762", Tags: []string{"cs.CL"}, Payload: []byte("{}")}, []part{
		{1, "UID 1"}, {3, "id 70000"}, {11, "key: 1706.03762"}, {1, "1 tag"}, {6, "cs.CL"}, {3, "payload: {}"},
	}},
}

func attrOf(x any) attr.Value {
	v, err := attr.Of(x)
	if err != nil {
		panic(err)
	}
	return v
}

type part struct {
	bytes int
	what  string
}

// TestEncodeOpsVersion: the version is that of the newest operation, whatever their order.
func TestEncodeOpsVersion(t *testing.T) {
	for _, first := range opCases {
		one := storage.EncodeOps([]storage.Op{first.op})[0]
		for _, second := range opCases {
			other := storage.EncodeOps([]storage.Op{second.op})[0]
			both := storage.EncodeOps([]storage.Op{first.op, second.op})[0]
			assert.Equal(t, max(one, other), both, "%s, %s", first.name, second.name)
		}
	}
}

// TestEncodeOpsGolden pins every byte that log files hold.
func TestEncodeOpsGolden(t *testing.T) {
	var golden strings.Builder
	for _, c := range opCases {
		b := storage.EncodeOps([]storage.Op{c.op})
		fmt.Fprintf(&golden, "# %s\n", c.name)
		version := "version 1"
		switch c.name {
		case "set_plans":
			version = "version 2"
		case "link_across", "unlink_across", "set_tags", "set_payload":
			version = "version 3"
		case "link_related", "unlink_related":
			version = "version 4"
		case "put_node_with_attributes", "set_attributes":
			version = "version 5"
		case "add_node":
			version = "version 6"
		case "link_recorded", "link_related_recorded":
			version = "version 7"
		}
		parts := append([]part{{1, version}, {1, "1 operation"}, {1, "kind"}}, c.parts...)
		for _, p := range parts {
			require.LessOrEqual(t, p.bytes, len(b), "%s: %s", c.name, p.what)
			fmt.Fprintf(&golden, "%-24s %s\n", hex.EncodeToString(b[:p.bytes]), p.what)
			b = b[p.bytes:]
		}
		assert.Empty(t, b, "%s: bytes without annotation", c.name)
	}
	path := filepath.Join("testdata", "ops.golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(golden.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), golden.String())
}

func TestDecodeOps(t *testing.T) {
	var all []storage.Op
	for _, c := range opCases {
		ops, err := storage.DecodeOps(storage.EncodeOps([]storage.Op{c.op}))
		require.NoError(t, err, c.name)
		assertSameOps(t, []storage.Op{c.op}, ops)
		assert.Equal(t, c.op.Collection(), ops[0].Collection())
		all = append(all, c.op)
	}
	ops, err := storage.DecodeOps(storage.EncodeOps(all))
	require.NoError(t, err)
	assertSameOps(t, all, ops)
	ops, err = storage.DecodeOps(storage.EncodeOps(nil))
	require.NoError(t, err)
	assert.Empty(t, ops)
}

// assertSameOps compares by encoding, to which nil and empty are the same.
func assertSameOps(t *testing.T, want, got []storage.Op) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		assert.IsType(t, want[i], got[i])
		assert.Equal(t, storage.EncodeOps(want[i:i+1]), storage.EncodeOps(got[i:i+1]))
	}
}

func TestDecodeOpsRefuses(t *testing.T) {
	tests := []struct {
		name   string
		data   []byte
		target error
		want   string
	}{
		{"nothing", nil, format.ErrCorrupt, "1 bytes wanted, 0 left"},
		{"newer version", []byte{8, 0}, format.ErrVersion, "version 8"},
		{"attribute of unknown type", []byte{5, 1, 18, 1, 0, 1, 1, 'a', 1, 9, 0}, format.ErrCorrupt, "unknown type"},
		{"attribute that is no number", []byte{5, 1, 18, 1, 0, 1, 1, 'a', 9, 1, 255, 255, 255, 255, 255, 255, 255, 255, 0}, format.ErrCorrupt, "no number"},
		{"relation without a name", []byte{4, 1, 15, 1, 1, 0, 0, 0}, format.ErrCorrupt, "a relation without a name"},
		{"link of no time", []byte{7, 1, 20, 1, 0, 1, 0, 5, 1, 9}, format.ErrCorrupt, "link recorded at 0"},
		{"version 0", []byte{0, 0}, format.ErrVersion, "version 0"},
		{"more operations than bytes", []byte{1, 200, 1, 2, 1}, format.ErrCorrupt, "200 elements"},
		{"unknown kind", []byte{1, 1, 77, 1}, format.ErrCorrupt, "unknown kind 77"},
		{"UID beyond 32 bits", []byte{1, 1, 2, 0x80, 0x80, 0x80, 0x80, 0x10}, format.ErrCorrupt, "does not fit 32 bits"},
		{"bytes left", []byte{1, 1, 2, 1, 9}, format.ErrCorrupt, "1 bytes too many"},
		{"row cut off", []byte{1, 1, 3, 1, 0, 1, 'k', 200, 1, 0, 0}, format.ErrCorrupt, "200 elements"},
		{"tags to set cut off", []byte{3, 1, 13, 1, 0, 9}, format.ErrCorrupt, "9 elements"},
		{"payload to set cut off", []byte{3, 1, 14, 1, 0, 9, 'x'}, format.ErrCorrupt, "9 elements"},
		{"tags cut off", []byte{1, 1, 3, 1, 0, 1, 'k', 0, 9}, format.ErrCorrupt, "9 elements"},
		{"dim 0", []byte{1, 1, 1, 1, 1, 'c', 0, 0}, format.ErrCorrupt, "dim 0"},
		{"unknown flags", []byte{1, 1, 1, 1, 1, 'c', 1, 6}, format.ErrCorrupt, "unknown schema flags 0x6"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ops, err := storage.DecodeOps(tt.data)
			assert.ErrorIs(t, err, tt.target)
			assert.ErrorContains(t, err, tt.want)
			assert.Nil(t, ops)
		})
	}
	whole := storage.EncodeOps([]storage.Op{opCases[2].op, opCases[7].op})
	for n := range whole {
		_, err := storage.DecodeOps(whole[:n])
		assert.Error(t, err, "cut to %d bytes", n)
	}
}

// A hostile length must not make DecodeOps allocate more than in proportion to its input.
func TestDecodeOpsAllocation(t *testing.T) {
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x07}
	for name, head := range map[string][]byte{
		"operations": {1},
		"row":        {1, 1, 3, 1, 0, 1, 'k'},
		"tags":       {1, 1, 3, 1, 0, 1, 'k', 0},
		"payload":    {1, 1, 3, 1, 0, 1, 'k', 0, 0},
		"key":        {1, 1, 3, 1, 0},
		"targets":    {1, 1, 5, 1, 0},
		"blob":       {1, 1, 7, 1, 1, 'd'},
		"across":     {3, 1, 11, 1, 2, 0},
		"related":    {4, 1, 15, 1, 1, 1, 'r', 0},
		"relation":   {4, 1, 16, 1, 1},
		"set tags":   {3, 1, 13, 1, 0},
		"set bytes":  {3, 1, 14, 1, 0},
		"attributes": {5, 1, 18, 1, 0},
		"names":      {5, 1, 18, 1, 0, 0},
	} {
		b := append(append(bytes.Clone(head), huge...), make([]byte, 1000)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := storage.DecodeOps(b)
		runtime.ReadMemStats(&after)
		assert.ErrorContains(t, err, "2147483647 elements", name)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10), name)
	}
}

func FuzzDecodeOps(f *testing.F) {
	var all []storage.Op
	for _, c := range opCases {
		f.Add(storage.EncodeOps([]storage.Op{c.op}))
		all = append(all, c.op)
	}
	f.Add(storage.EncodeOps(all))
	f.Add([]byte{1, 1, 3, 1, 0, 1, 'k', 200, 1, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		ops, err := storage.DecodeOps(b)
		if err != nil {
			return
		}
		// Varints may be longer than need be, so that the bytes may differ; but the second encoding
		// is a fixed point.
		encoded := storage.EncodeOps(ops)
		again, err := storage.DecodeOps(encoded)
		require.NoError(t, err)
		assert.Equal(t, encoded, storage.EncodeOps(again))
	})
}

// Counts of operations and of tags that are not there take no memory for them.
func TestDecodeOpsFalseCounts(t *testing.T) {
	filler := bytes.Repeat([]byte{0xff}, 2<<20)
	ops := format.NewWriter(nil)
	ops.Uint8(2)
	ops.Uvarint(1 << 20)
	ops.Bytes(filler)

	tags := format.NewWriter(nil)
	tags.Uint8(2)
	tags.Uvarint(1)
	tags.Uint8(3) // PutNode
	for range 4 { // collection, id, an empty key, no row
		tags.Uvarint(0)
	}
	tags.Uvarint(1 << 20)
	tags.Bytes(filler)
	for _, b := range [][]byte{ops.Data(), tags.Data()} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := storage.DecodeOps(b)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, format.ErrCorrupt)
		assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
	}
}
