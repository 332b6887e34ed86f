package backup_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/backup"
	"github.com/flashdb/flashdb/internal/format"
)

var update = flag.Bool("update", false, "write golden files anew")

type file struct {
	backup.Entry
	data []byte
}

func newFile(kind backup.Kind, name string, data []byte) file {
	return file{backup.Entry{Kind: kind, Name: name, Size: uint64(len(data))}, data}
}

func headerOf(files []file) backup.Header {
	h := backup.Header{LSN: 77, Entries: uint32(len(files))}
	for _, f := range files {
		h.Bytes += f.Size
	}
	return h
}

func write(t testing.TB, files ...file) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := backup.NewWriter(&out, headerOf(files))
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, w.Entry(f.Entry, bytes.NewReader(f.data)))
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func readAll(stream io.Reader, opt *backup.Options) (files []file, err error) {
	r, err := backup.NewReader(stream, opt)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for {
		e, err := r.Next()
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return files, err
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return files, err
		}
		files = append(files, file{e, data})
	}
}

// small are the files of the golden stream.
func small() []file {
	return []file{
		newFile(backup.Store, "flash.db", []byte("bbolt")),
		newFile(backup.Segment, "wal/0000000000000001.log", []byte{}),
		newFile(backup.Generation, "index/c/gen-000001.ivf", []byte{1, 2, 3}),
	}
}

func unpack(t testing.TB, packed []byte) []byte {
	t.Helper()
	d, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer d.Close()
	b, err := d.DecodeAll(packed, nil)
	require.NoError(t, err)
	return b
}

func pack(t testing.TB, b []byte) []byte {
	t.Helper()
	packer.once.Do(func() {
		var err error
		packer.e, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
		require.NoError(t, err)
	})
	return packer.e.EncodeAll(b, nil)
}

var packer struct {
	once sync.Once
	e    *zstd.Encoder
}

func TestReadsWhatWasWritten(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789abcdef"), 50_000) // several chunks, the last one short
	exact := make([]byte, 512<<10)                           // whole chunks
	files := append(small(), newFile(backup.Generation, "index/c/long", long), newFile(backup.Generation, "index/c/exact", exact))
	packed := write(t, files...)
	for name, stream := range map[string]io.Reader{
		"at once":    bytes.NewReader(packed),
		"bytes":      iotest.OneByteReader(bytes.NewReader(packed)),
		"data + EOF": iotest.DataErrReader(bytes.NewReader(packed)),
	} {
		got, err := readAll(stream, nil)
		require.NoError(t, err, name)
		assert.Equal(t, files, got, name)
	}

	r, err := backup.NewReader(bytes.NewReader(packed), nil)
	require.NoError(t, err)
	defer r.Close()
	assert.Equal(t, headerOf(files), r.Header())
	for range files {
		_, err := r.Next()
		require.NoError(t, err, "entries may be skipped")
	}
	_, err = r.Next()
	assert.Equal(t, io.EOF, err)
	_, err = r.Next()
	assert.Equal(t, io.EOF, err, "and it stays there")
	assert.Equal(t, uint64(len(packed)), r.Packed())
}

// The stream of the golden file is written out by hand: a change of layout is a new version.
func TestGolden(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("testdata", "v1.hex"))
	require.NoError(t, err)
	golden := regexp.MustCompile(`(?m)#.*$|\s`).ReplaceAllString(string(text), "")
	got := unpack(t, write(t, small()...))
	assert.Equal(t, golden, hex.EncodeToString(got))
	want, err := hex.DecodeString(golden)
	require.NoError(t, err)
	files, err := readAll(bytes.NewReader(pack(t, want)), nil)
	require.NoError(t, err)
	assert.Equal(t, small(), files)
}

// TestFrozen reads a packed stream as the first release wrote it. That must work for ever.
func TestFrozen(t *testing.T) {
	name := filepath.Join("testdata", "v1.zst")
	if _, err := os.Stat(name); os.IsNotExist(err) && *update {
		require.NoError(t, os.WriteFile(name, write(t, small()...), 0o644))
	}
	packed, err := os.ReadFile(name)
	require.NoError(t, err)
	files, err := readAll(bytes.NewReader(packed), nil)
	require.NoError(t, err)
	assert.Equal(t, small(), files)
}

func TestEveryTruncationIsRefused(t *testing.T) {
	packed := write(t, small()...)
	for n := range packed {
		_, err := readAll(bytes.NewReader(packed[:n]), &backup.Options{File: "b.zst"})
		assert.ErrorIs(t, err, format.ErrCorrupt, "packed, cut at %d", n)
		assert.ErrorContains(t, err, "b.zst")
	}
	plain := unpack(t, packed)
	for n := range plain {
		_, err := readAll(bytes.NewReader(pack(t, plain[:n])), nil)
		assert.ErrorIs(t, err, format.ErrCorrupt, "unpacked, cut at %d", n)
	}
}

func TestFlippedBitsAreRefusedOrHarmless(t *testing.T) {
	want := small()
	packed := write(t, want...)
	refused := 0
	for i := 0; i < 8*len(packed); i += 5 { // some bit of every byte, and mostly two
		bad := bytes.Clone(packed)
		bad[i/8] ^= 1 << (i % 8)
		got, err := readAll(bytes.NewReader(bad), nil)
		if err == nil {
			require.Equal(t, want, got, "bit %d", i) // a bit that the zstd format does not use
			continue
		}
		refused++
		require.True(t, errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrVersion), "bit %d: %v", i, err)
	}
	assert.Greater(t, refused, 8*len(packed)/5*9/10)

	plain := unpack(t, packed)
	for i := 0; i < 8*len(plain); i += 5 {
		bad := bytes.Clone(plain)
		bad[i/8] ^= 1 << (i % 8)
		_, err := readAll(bytes.NewReader(pack(t, bad)), nil)
		require.Error(t, err, "unpacked, bit %d", i)
	}
	for i, b := range plain {
		if b != 0 {
			bad := bytes.Clone(plain)
			bad[i] = 0
			_, err := readAll(bytes.NewReader(pack(t, bad)), nil)
			require.Error(t, err, "unpacked, byte %d zero", i)
		}
	}
	for _, more := range []string{"\x00", "x", string(plain)} {
		_, err := readAll(bytes.NewReader(pack(t, append(bytes.Clone(plain), more...))), nil)
		require.ErrorIs(t, err, format.ErrCorrupt, "unpacked, %d bytes longer", len(more))
	}
}

// sealed makes an unpacked stream of one small file of its parts, with a checksum behind each of
// them and a trailer.
func sealed(header, entry, data []byte, h backup.Header) []byte {
	crc := func(b []byte) []byte { return binary.LittleEndian.AppendUint32(bytes.Clone(b), format.CRC(b)) }
	out := append(crc(header), crc(entry)...)
	if len(data) > 0 {
		out = append(out, crc(data)...)
	}
	var w format.Writer
	w.Bytes(out)
	w.Uint32(0)
	w.Uint32(h.Entries)
	w.Uint64(h.Bytes)
	w.CRC(0)
	return w.Data()
}

func header(version uint32, h backup.Header) []byte {
	var w format.Writer
	w.Bytes([]byte("flashbak"))
	w.Uint32(version)
	w.Uint32(h.Entries)
	w.Uint64(h.Bytes)
	w.Uint64(h.LSN)
	return w.Data()
}

func entry(kind uint8, name string, size uint64) []byte {
	var w format.Writer
	w.Uint8(kind)
	w.Uint8(0)
	w.Uint16(uint16(len(name)))
	w.Uint64(size)
	w.Bytes([]byte(name))
	return w.Data()
}

func TestRefuses(t *testing.T) {
	one := backup.Header{Entries: 1, Bytes: 3, LSN: 1}
	good := sealed(header(1, one), entry(1, "f", 3), []byte("abc"), one)
	_, err := readAll(bytes.NewReader(pack(t, good)), nil)
	require.NoError(t, err, "the parts fit together")

	named := func(name string) []byte { return sealed(header(1, one), entry(1, name, 3), []byte("abc"), one) }
	two := backup.Header{Entries: 2, Bytes: 3, LSN: 1}
	four := backup.Header{Entries: 1, Bytes: 4, LSN: 1}
	tests := []struct {
		name   string
		stream []byte
		want   string
	}{
		{"parent", named("../f"), "not a relative path"},
		{"parent inside", named("a/../../f"), "not a relative path"},
		{"absolute", named("/etc/passwd"), "not a relative path"},
		{"here", named("."), "not a relative path"},
		{"backslash", named(`..\f`), "not a relative path"},
		{"drive", named("c:f"), "not a relative path"},
		{"zero byte", named("f\x00"), "not a relative path"},
		{"no name", named(""), "name of 0 bytes"},
		{"long name", named(strings.Repeat("n", 1025)), "name of 1025 bytes"},
		{"not UTF-8", named("f\xff"), "not a relative path"},
		{"kind", sealed(header(1, one), entry(4, "f", 3), []byte("abc"), one), "kind 4"},
		{"more bytes than announced", sealed(header(1, one), entry(1, "f", 4), []byte("abcd"), one), "more than the header announced"},
		{"absurd size", sealed(header(1, one), entry(1, "f", 1<<63), []byte("abcd"), one), "more than the header announced"},
		{"fewer entries", sealed(header(1, two), entry(1, "f", 3), []byte("abc"), two), "there were 1 of 3"},
		{"fewer bytes", sealed(header(1, four), entry(1, "f", 3), []byte("abc"), four), "there were 1 of 3"},
		{"trailer of another", sealed(header(1, one), entry(1, "f", 3), []byte("abc"), two), "it counts 2 entries"},
		{"bytes after the end", append(bytes.Clone(good), 0), "bytes follow the end"},
		{"another magic", append([]byte("flashbat"), good[8:]...), "not a flashdb backup"},
		{"empty", nil, "ends early"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := readAll(bytes.NewReader(pack(t, tt.stream)), nil)
			assert.ErrorIs(t, err, format.ErrCorrupt)
			assert.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), "\n")
		})
	}
	_, err = readAll(strings.NewReader("PK\x03\x04 a zip file"), nil)
	assert.ErrorIs(t, err, format.ErrCorrupt)
	assert.ErrorContains(t, err, "it is not zstd-compressed")

	_, err = readAll(bytes.NewReader(pack(t, sealed(header(2, one), entry(1, "f", 3), []byte("abc"), one))), nil)
	assert.ErrorIs(t, err, format.ErrVersion)
	assert.EqualError(t, err, "backup stream has format version 2, this program reads up to version 1: use a newer program")
}

func TestBombsAreRefused(t *testing.T) {
	assert.Equal(t, uint64(64<<20+1000*5), backup.Limit(&backup.Options{}, 5))
	assert.Equal(t, uint64(9), backup.Limit(&backup.Options{MaxBytes: 9}, 5))

	packed := write(t, newFile(backup.Store, "flash.db", make([]byte, 1<<20)))
	_, err := readAll(bytes.NewReader(packed), &backup.Options{MaxBytes: 1 << 20})
	assert.ErrorIs(t, err, format.ErrCorrupt)
	assert.ErrorContains(t, err, "unpacks to more than 1048576 bytes")
	_, err = readAll(bytes.NewReader(packed), &backup.Options{MaxBytes: 1<<20 + 1<<10})
	assert.NoError(t, err)
	_, err = readAll(bytes.NewReader(write(t, small()...)), &backup.Options{MaxBytes: 10})
	assert.ErrorContains(t, err, "unpacks to more than 10 bytes")

	var wide bytes.Buffer
	e, err := zstd.NewWriter(&wide, zstd.WithWindowSize(64<<20))
	require.NoError(t, err)
	_, err = e.Write(unpack(t, write(t, small()...)))
	require.NoError(t, err)
	require.NoError(t, e.Flush())
	_, err = e.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, e.Close())
	_, err = readAll(&wide, nil)
	assert.ErrorContains(t, err, "window size exceeded")
}

func TestErrorsOfTheSourceAreNotDamage(t *testing.T) {
	packed := write(t, small()...)
	for n := range packed {
		source := io.MultiReader(bytes.NewReader(packed[:n]), iotest.ErrReader(context.Canceled))
		_, err := readAll(source, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, format.ErrCorrupt)
	}
}

func TestWriterRefuses(t *testing.T) {
	files := small()
	w, err := backup.NewWriter(io.Discard, headerOf(files))
	require.NoError(t, err)
	require.NoError(t, w.Entry(files[0].Entry, bytes.NewReader(files[0].data)))
	assert.ErrorContains(t, w.Close(), "it has 1 entries of 5 bytes, its header says 3 of 8")

	w, err = backup.NewWriter(io.Discard, headerOf(files))
	require.NoError(t, err)
	assert.ErrorIs(t, w.Entry(files[0].Entry, strings.NewReader("bb")), io.ErrUnexpectedEOF)
	assert.ErrorContains(t, w.Entry(backup.Entry{Kind: backup.Store, Name: "../x"}, strings.NewReader("")), "not a relative path")
	w.Abandon()

	full := errors.New("disk full")
	w, err = backup.NewWriter(failingWriter{full}, headerOf(files[:1]))
	if err == nil {
		err = w.Entry(files[0].Entry, bytes.NewReader(files[0].data))
	}
	if err == nil {
		err = w.Close()
	}
	assert.ErrorIs(t, err, full)
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

// FuzzReader feeds bytes as a packed stream and as an unpacked one. The reader must not panic, must
// hand out no more than it was allowed to, and what it accepts it must accept again after it has
// been written anew.
func FuzzReader(f *testing.F) {
	packed := write(f, small()...)
	f.Add(packed)
	f.Add(packed[:len(packed)/2])
	f.Add(unpack(f, packed))
	one := backup.Header{Entries: 1, Bytes: 3, LSN: 1}
	f.Add(sealed(header(1, one), entry(1, "../f", 3), []byte("abc"), one))
	f.Add(sealed(header(1, one), entry(1, "f", 1<<62), []byte("abc"), one))
	f.Fuzz(func(t *testing.T, b []byte) {
		const limit = 1 << 20
		for _, stream := range [][]byte{b, pack(t, b)} {
			files, err := readAll(bytes.NewReader(stream), &backup.Options{MaxBytes: limit})
			var size uint64
			for _, f := range files {
				size += f.Size
				require.Equal(t, f.Size, uint64(len(f.data)))
			}
			require.LessOrEqual(t, size, uint64(limit))
			if err != nil {
				require.NotContains(t, err.Error(), "\n")
				continue
			}
			again, err := readAll(bytes.NewReader(write(t, files...)), nil)
			require.NoError(t, err)
			require.Equal(t, files, again)
		}
	})
}
