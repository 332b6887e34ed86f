package ivf

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/format"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile("testdata/"+name, []byte(got), 0o644))
	}
	want, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "if this change is meant, run go test -update and look at the difference")
}

// tiny is an index whose bytes do not depend on how a kernel rounds: all numbers are small
// integers, the spread of the lists (2 and 4) included.
func tiny() (*table, BuildOptions) {
	return &table{
		dim: 3,
		ids: []uint32{2, 3, 5, 7, 11, 13, 17, 19},
		rows: []float32{
			0, 0, 0,
			96, 0, 0,
			4, 0, 4,
			104, 0, 8,
			0, 4, 4,
			96, 8, 8,
			4, 4, 0,
			104, 8, 0,
		},
	}, BuildOptions{Dim: 3, Lists: 2, Seed: 9, Collection: 4, BuildLSN: 1000}
}

func TestFormatGolden(t *testing.T) {
	rows, opt := tiny()
	golden(t, "tiny.hex", annotate(t, buildBytes(t, rows, opt)))
}

// annotate prints a file in hex, one line per field, with what it means.
func annotate(t *testing.T, data []byte) string {
	t.Helper()
	var out strings.Builder
	at := 0
	field := func(n int, text string, args ...any) {
		fmt.Fprintf(&out, "%5d  % x  %s\n", at, data[at:at+n], fmt.Sprintf(text, args...))
		at += n
	}
	u16 := func(name string) { field(2, "%s %d", name, binary.LittleEndian.Uint16(data[at:])) }
	u32 := func(name string) { field(4, "%s %d", name, binary.LittleEndian.Uint32(data[at:])) }
	u64 := func(name string) { field(8, "%s %d", name, binary.LittleEndian.Uint64(data[at:])) }
	f32 := func(name string) {
		field(4, "%s %v", name, math.Float32frombits(binary.LittleEndian.Uint32(data[at:])))
	}

	fmt.Fprintln(&out, "header")
	field(8, "magic %q", data[:8])
	u32("version")
	u32("sections")
	u32("dim")
	u32("lists")
	u64("rows")
	u16("bits a sub-vector")
	u16("dimensions a sub-vector")
	u32("collection")
	u64("build LSN")
	u64("seed")
	field(8, "settings")
	u64("file length")
	field(20, "zero")
	field(4, "CRC32C")

	_, sections, err := parseHeader(data, "golden")
	require.NoError(t, err)
	for _, s := range sections {
		fmt.Fprintln(&out, "table entry of", s.kind)
		u32("kind")
		u32("flags")
		u64("offset")
		u64("length")
		field(4, "CRC32C")
		u32("zero")
	}
	for _, s := range sections {
		fmt.Fprintln(&out, s.kind)
		if n := int(s.offset) - at; n > 0 {
			field(n, "gap")
		}
		switch s.kind {
		case kindCodebooks:
			u32("dim")
			u16("bits a sub-vector")
			u16("dimensions a sub-vector")
			f32("loss")
		case kindCodes:
			for at < int(s.end()) {
				field(32, "block %d: 32 codes of one pair", (at-int(s.offset))/32)
			}
		case kindKeys:
			annotateKeys(data[s.offset:s.end()], field, u32, u64)
		}
		for at < int(s.end()) {
			switch s.kind {
			case kindLists:
				u32("position")
			case kindIDs:
				u32("id")
			case kindGroups:
				u32("list")
			case kindExponents:
				field(1, "exponent %d", int8(data[at]))
			default:
				f32("")
			}
		}
	}
	require.Len(t, data, at)
	return out.String()
}

// TestFrozenFile opens a file that the first release wrote. The file must never be rewritten. A
// change of the format adds another file.
func TestFrozenFile(t *testing.T) {
	data, err := os.ReadFile("testdata/v1.ivf")
	require.NoError(t, err)
	ix, err := Load(data, "v1.ivf")
	require.NoError(t, err)
	require.NoError(t, ix.Check())
	golden(t, "v1.golden", answers(t, ix, "%.2f"))
}

// TestFrozenExponents is TestFrozenFile for a file of the first release that wrote exponents.
func TestFrozenExponents(t *testing.T) {
	data, err := os.ReadFile("testdata/v1-exponents.ivf")
	require.NoError(t, err)
	ix, err := Load(data, "v1-exponents.ivf")
	require.NoError(t, err)
	require.NoError(t, ix.Check())
	golden(t, "v1-exponents.golden", answers(t, ix, "%.4g"))
}

// answers describes an index and what some queries find.
func answers(t *testing.T, ix *Index, score string) string {
	rows := clustered(2022, 1000, 6)
	var out strings.Builder
	fmt.Fprintf(&out, "%+v\n", ix.Info())
	s := ix.NewSearch()
	for i, q := range rows.queries(2022, 4) {
		fmt.Fprintf(&out, "query %d\n", i)
		s.Reset()
		for _, probes := range []index.Probes{{Lists: 1}, {Share: 0.1}, {Share: 0.5}, {Share: 1}} {
			dst := make([][]index.Candidate, 1)
			require.NoError(t, s.Search(t.Context(), [][]float32{q}, 5, probes, index.Filter{}, dst))
			fmt.Fprintf(&out, "  %-8v %2d lists %4d rows %4d codes:", probes, s.Cost().Lists, s.Cost().Rows, s.Cost().Codes)
			for _, c := range dst[0] {
				fmt.Fprintf(&out, "  %d at %d "+score, c.ID, c.Ref, c.Score)
			}
			fmt.Fprintln(&out)
		}
	}
	return out.String()
}

func TestTruncated(t *testing.T) {
	rows, opt := tiny()
	data := buildBytes(t, rows, opt)
	_, sections, err := parseHeader(data, "f")
	require.NoError(t, err)
	type cut struct {
		length  int
		section string
		offset  int
	}
	cuts := []cut{{0, "header", 0}, {7, "header", 0}, {40, "header", 40}, {95, "header", 92}, {96, "section table", 96}, {300, "section table", 96}}
	for _, s := range sections {
		cuts = append(cuts,
			cut{int(s.offset), s.kind.String(), int(s.offset)},
			cut{int(s.end()) - 1, s.kind.String(), int(s.offset)})
	}
	for _, c := range cuts {
		_, err := Load(data[:c.length], "gen.ivf")
		var corrupt *format.CorruptError
		require.ErrorAs(t, err, &corrupt, "%d bytes", c.length)
		assert.Equal(t, "gen.ivf", corrupt.File)
		assert.Equal(t, c.section, corrupt.Section, "%d bytes: %v", c.length, err)
		assert.EqualValues(t, c.offset, corrupt.Offset, "%d bytes: %v", c.length, err)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err = Load(append(slices.Clone(data), 0), "gen.ivf")
	require.EqualError(t, err, fmt.Sprintf("corrupt gen.ivf: header at offset 64: file length is %d, want %d", len(data)+1, len(data)))
}

// tinyAndHuge is tiny with a list of rows whose variances no float32 can hold.
func tinyAndHuge() (*table, BuildOptions) {
	rows, opt := tiny()
	rows.ids = append(rows.ids, 23, 29)
	rows.rows = append(rows.rows, 1<<100, 0, 0, 3*(1<<100), 1<<101, 1<<101)
	opt.Lists++
	return rows, opt
}

func TestExponents(t *testing.T) {
	rows, opt := tinyAndHuge()
	data := buildBytes(t, rows, opt)
	golden(t, "exponents.hex", annotate(t, data))
	ix, err := Load(data, "gen.ivf")
	require.NoError(t, err)
	require.NoError(t, ix.Check())
	last := ix.Info().Lists - 1
	require.Equal(t, float32(1<<100), ix.spread[last])
	s := ix.section(kindExponents)
	require.NotNil(t, s)
	assert.EqualValues(t, flagRequired, s.flags, "without it, variances are misread")
	assert.EqualValues(t, ix.Info().Lists, s.length)
	rows, opt = tiny()
	assert.Nil(t, build(t, rows, opt).section(kindExponents), "left out where all are 0")

	_, err = Load(edit(t, data, func(_ *header, sections *[]section, _ []byte) {
		(*sections)[len(*sections)-1].length--
	}), "gen.ivf")
	require.ErrorContains(t, err, "corrupt gen.ivf: exponents at offset")
}

// TestFlippedBytes damages every byte of a file in turn. Load or Check notices and says where.
func TestFlippedBytes(t *testing.T) {
	rows, opt := tinyAndHuge()
	opt.Keys = someKeys()
	data := withGroups(t, buildBytes(t, rows, opt), 0, 1, 3)
	_, sections, err := parseHeader(data, "f")
	require.NoError(t, err)
	for at := range data {
		broken := slices.Clone(data)
		broken[at] ^= 0x10
		ix, err := Load(broken, "gen.ivf")
		if err == nil {
			err = ix.Check()
		}
		if 8 <= at && at < 12 {
			require.ErrorIs(t, err, format.ErrVersion)
			continue
		}
		var corrupt *format.CorruptError
		require.ErrorAs(t, err, &corrupt, "byte %d", at)
		require.ErrorIs(t, err, format.ErrCorrupt)
		want := "header"
		if at >= headerBytes {
			want = "gap"
		}
		if at >= headerBytes && at < headerBytes+len(sections)*entryBytes {
			want = "header" // whose checksum covers the table
		}
		for _, s := range sections {
			if int64(at) >= s.offset && int64(at) < s.end() {
				want = s.kind.String()
				if s.kind == kindKeys && int64(at) >= s.end()-keysFooter { // which is verified before the checksum
					require.GreaterOrEqual(t, corrupt.Offset, s.offset)
					continue
				}
				require.EqualValues(t, s.offset, corrupt.Offset)
			}
		}
		if at >= 12 && at < 16 { // a wrong count moves the end of the table
			continue
		}
		require.Equal(t, want, corrupt.Section, "byte %d: %v", at, err)
	}
}

// edit returns a copy of a file with its parsed header and sections changed, and every checksum
// right again. Change gets the file, too: its sections may be written to.
func edit(t testing.TB, data []byte, change func(h *header, sections *[]section, data []byte)) []byte {
	t.Helper()
	data = slices.Clone(data)
	h, sections, err := parseHeader(data, "edit")
	require.NoError(t, err)
	change(&h, &sections, data)
	h.sections = len(sections)
	for i := range sections {
		s := &sections[i]
		if s.offset >= 0 && s.length >= 0 && s.end() <= int64(len(data)) {
			s.crc = format.CRC(data[s.offset:s.end()])
		}
	}
	copy(data, marshalHeader(h, sections))
	return data
}

func TestUnknownSections(t *testing.T) {
	rows, opt := tiny()
	data := buildBytes(t, rows, opt)
	rename := func(flags uint32) []byte {
		return edit(t, data, func(_ *header, sections *[]section, _ []byte) {
			last := &(*sections)[len(*sections)-1]
			require.Equal(t, kindRows, last.kind)
			last.kind, last.flags = 99, flags
		})
	}
	ix, err := Load(rename(0), "gen.ivf")
	require.NoError(t, err, "an unknown optional section is skipped")
	require.NoError(t, ix.Check())
	assert.False(t, ix.Info().HasRows)

	_, err = Load(rename(flagRequired), "gen.ivf")
	require.EqualError(t, err, "gen.ivf: section of kind 99 is required and unknown to this program, use a newer one: unsupported format version")
	require.ErrorIs(t, err, format.ErrVersion)
}

// TestHostileFiles has faults behind valid checksums.
func TestHostileFiles(t *testing.T) {
	rows, opt := tiny()
	data := buildBytes(t, rows, opt)
	at := func(sections *[]section, k kind) *section {
		return &(*sections)[slices.IndexFunc(*sections, func(s section) bool { return s.kind == k })]
	}
	put := func(data []byte, offset int64, v uint32) { binary.LittleEndian.PutUint32(data[offset:], v) }
	nan := math.Float32bits(float32(math.NaN()))
	tests := []struct {
		name   string
		change func(h *header, sections *[]section, data []byte)
		err    string // of Load, else of Check
	}{
		{"no rows", func(h *header, _ *[]section, _ []byte) { h.rows = 0 }, "header at offset 0: 0 rows: want 1 to 4294967295"},
		{"too many rows", func(h *header, _ *[]section, _ []byte) { h.rows = -1 }, "header at offset 0: 18446744073709551615 rows: want 1 to 4294967295"},
		{"too many lists", func(h *header, _ *[]section, _ []byte) { h.lists = 9 }, "header at offset 0: 9 lists of 8 rows: want 1 to the number of rows"},
		{"no dimension", func(h *header, _ *[]section, _ []byte) { h.dim = 0 }, "header at offset 0: dimension 0: want 1 to 65536"},
		{"bits", func(h *header, _ *[]section, _ []byte) { h.bits = 5 }, "header at offset 0: 5 bits a sub-vector: want 4 or 8"},
		{"other rows", func(h *header, _ *[]section, _ []byte) { h.rows = 7 }, "ids at offset 512: 32 bytes, want 28 for 7 rows in 2 lists of dimension 3"},
		{"other dimension", func(h *header, _ *[]section, _ []byte) { h.dim = 4 }, "centroids at offset 320: 24 bytes, want 32 for 8 rows in 2 lists of dimension 4"},
		{"codebooks of another shape", func(_ *header, s *[]section, data []byte) {
			put(data, at(s, kindCodebooks).offset, 4)
		}, "codebooks at offset 576: codebooks of {Dim:4 Bits:4 SubDim:2}, the header says {Dim:3 Bits:4 SubDim:2}"},
		{"section in the header", func(_ *header, s *[]section, _ []byte) { at(s, kindCentroids).offset = 64 }, "section table at offset 96: centroids begins at 64: want a multiple of 64 from 320 on"},
		{"sections overlap", func(_ *header, s *[]section, _ []byte) { at(s, kindIDs).offset = 320 }, "section table at offset 192: ids begins at 320: want a multiple of 64 from 460 on"},
		{"unaligned section", func(_ *header, s *[]section, _ []byte) { at(s, kindRows).offset++ }, "section table at offset 288: rows begins at 961: want a multiple of 64 from 960 on"},
		{"section beyond the end", func(_ *header, s *[]section, _ []byte) { at(s, kindRows).offset = 1 << 40 }, "rows at offset 1056: 96 bytes from 1099511627776 on, the file ends at 1056"},
		{"endless section", func(_ *header, s *[]section, _ []byte) { at(s, kindRows).length = -1 }, "rows at offset 960: 18446744073709551615 bytes from 960 on, the file ends at 1056"},
		{"missing section", func(_ *header, s *[]section, _ []byte) { at(s, kindLists).kind = 50; at(s, 50).flags = 0 }, "section table at offset 96: no section of lists"},
		{"second section", func(_ *header, s *[]section, _ []byte) { at(s, kindVariances).kind = kindCentroids }, "centroids at offset 384: a second section of this kind"},
		{"first list does not begin at 0", func(_ *header, s *[]section, data []byte) {
			put(data, at(s, kindLists).offset, 1)
		}, "lists at offset 448: lists of the positions 1 to 8, want 0 to 8"},
		{"list ends before it begins", func(_ *header, s *[]section, data []byte) {
			put(data, at(s, kindLists).offset+4, 0)
		}, "lists at offset 452: list 0 has the positions 0 to 0 of 8"},
		{"list beyond the rows", func(_ *header, s *[]section, data []byte) {
			put(data, at(s, kindLists).offset+4, 1<<31)
		}, "lists at offset 452: list 0 has the positions 0 to 2147483648 of 8"},
		{"codes for other lists", func(_ *header, s *[]section, _ []byte) { at(s, kindCodes).length -= 32 }, "codes at offset 896: 32 bytes, want 64"},
		{"ids not ascending", func(_ *header, s *[]section, data []byte) {
			put(data, at(s, kindIDs).offset+4, 3)
		}, "ids at offset 516: id 3 after 3 in list 0"},
		{"id in two lists", func(_ *header, s *[]section, data []byte) {
			put(data, at(s, kindIDs).offset, 2)
		}, "ids at offset 528: id 2 is in list 1 and in an earlier one"},
		{"centroid not finite", func(_ *header, s *[]section, data []byte) {
			put(data, at(s, kindCentroids).offset+8, nan)
		}, "centroids at offset 328: value NaN: want a finite number of at least -3.4028235e+38"},
		{"negative variance", func(_ *header, s *[]section, data []byte) {
			put(data, at(s, kindVariances).offset, math.Float32bits(-1))
		}, "variances at offset 384: value -1: want a finite number of at least 0"},
		{"row not finite", func(_ *header, s *[]section, data []byte) {
			put(data, at(s, kindRows).offset+4, nan)
		}, "rows at offset 964: value NaN: want a finite number of at least -3.4028235e+38"},
		{"code padding", func(_ *header, s *[]section, data []byte) {
			data[at(s, kindCodes).offset+31] = 7
		}, "codes at offset 927: byte 07 after the last code of list 0, want zero"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ix, err := Load(edit(t, data, tt.change), "gen.ivf")
			if err == nil {
				err = ix.Check()
			}
			require.EqualError(t, err, "corrupt gen.ivf: "+tt.err)
			require.ErrorIs(t, err, format.ErrCorrupt)
		})
	}
}

// FuzzLoad feeds Load bytes whose checksums are made right, so that the fuzzer gets past them. What
// loads is searched.
func FuzzLoad(f *testing.F) {
	rows, opt := tiny()
	f.Add(buildBytes(f, rows, opt), true)
	f.Add(withGroups(f, buildBytes(f, rows, opt), 0, 1, 2), true)
	opt.Keys = someKeys()
	f.Add(buildBytes(f, rows, opt), true)
	opt.Keys = nil
	opt.OmitRows, opt.Bits = true, 8
	f.Add(buildBytes(f, rows, opt), true)
	f.Add(buildBytes(f, clustered(1, 70, 2), BuildOptions{Dim: 2, Lists: 3}), false)
	f.Fuzz(func(t *testing.T, data []byte, seal bool) {
		if seal {
			data = reseal(data)
		}
		ix, err := Load(data, "fuzz")
		if err != nil {
			require.True(t, errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrVersion), "%v", err)
			return
		}
		checked := ix.Check()
		for _, id := range []uint32{0, 1, 2, idsPerBase - 1, idsPerBase, ix.maxID - 1, ix.maxID, ix.maxID + 1, math.MaxUint32} {
			if key, ok := ix.Key(id); ok && checked == nil {
				require.NotEmpty(t, key)
				require.True(t, slices.Contains(ix.ids, id), "key of id %d, which is no row", id)
			}
		}
		q := make([]float32, ix.Dim())
		for i := range q {
			q[i] = float32(i%3) - 1
		}
		filter := index.Filter{}
		s := ix.NewSearch()
		dst := make([][]index.Candidate, 2)
		require.NoError(t, s.Search(t.Context(), [][]float32{q, q}, 3, index.Probes{Lists: 1}, filter, dst))
		require.NoError(t, s.Search(t.Context(), [][]float32{q}, 1000, index.Probes{Share: 1}, filter, dst[:1]))
		if ix.Info().HasRows {
			require.NoError(t, ix.Gather(make([]float32, len(dst[0])*ix.Dim()), dst[0]))
		}
	})
}

// reseal makes the checksums of a file right, as far as its table makes sense.
func reseal(data []byte) []byte {
	data = slices.Clone(data)
	if len(data) < headerBytes {
		return data
	}
	n := int(min(binary.LittleEndian.Uint32(data[12:]), uint32((len(data)-headerBytes)/entryBytes)))
	table := data[headerBytes : headerBytes+n*entryBytes]
	for i := range n {
		entry := table[i*entryBytes:]
		offset, length := binary.LittleEndian.Uint64(entry[8:]), binary.LittleEndian.Uint64(entry[16:])
		if offset <= uint64(len(data)) && length <= uint64(len(data))-offset {
			binary.LittleEndian.PutUint32(entry[24:], format.CRC(data[offset:offset+length]))
		}
	}
	binary.LittleEndian.PutUint32(data[crcOffset:], format.CRCUpdate(format.CRC(data[:crcOffset]), table))
	return data
}
