package tests

import (
	"bytes"
	"context"
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/backup"
)

// TestRestoreVerifiesPages restores a flash.db with a loop among its pages that an Open of a
// database's own file does not look for: the lookups of bbolt would overflow the stack, which no
// program survives.
func TestRestoreVerifiesPages(t *testing.T) {
	im := newImage(t, 1500, 7)
	db, c, dir, _ := served(t, &im)
	require.NoError(t, db.Checkpoint(context.Background()))
	// A replay of the log looks this node up, before Check looks at anything.
	node := flashdb.Node{Key: "node700", Embedding: make([]float32, c.Schema().Dim)}
	require.NoError(t, c.Upsert(context.Background(), node))
	files := readFiles(t, dir)
	require.NoError(t, db.Close())
	file := files["flash.db"]
	const size = 8 << 10
	looped := false
	for page := uint64(2); page < uint64(len(file))/size; page++ {
		head := file[page*size:]
		if binary.NativeEndian.Uint64(head) != page || binary.NativeEndian.Uint16(head[8:]) != 1 {
			continue // no branch
		}
		// All leaves below it but the first become branches that lead to themselves.
		for i := uint64(1); i < uint64(binary.NativeEndian.Uint16(head[10:])); i++ {
			leaf := binary.NativeEndian.Uint64(head[16+16*i+8:])
			b := file[leaf*size:]
			if binary.NativeEndian.Uint16(b[8:]) != 2 {
				continue
			}
			binary.NativeEndian.PutUint16(b[8:], 1)
			for j := range uint64(binary.NativeEndian.Uint16(b[10:])) {
				binary.NativeEndian.PutUint64(b[16+16*j+8:], leaf)
			}
			looped = true
		}
	}
	require.True(t, looped)
	file = append(file, make([]byte, 64<<20+size-len(file))...) // Open reads all pages of a file that is smaller
	files["flash.db"] = file
	var out bytes.Buffer
	entries := map[string]backup.Kind{"flash.db": backup.Store}
	size64 := uint64(len(file))
	for name, data := range files {
		if strings.HasPrefix(name, "wal/") {
			entries[name] = backup.Segment
			size64 += uint64(len(data))
		}
	}
	w, err := backup.NewWriter(&out, backup.Header{Entries: uint32(len(entries)), Bytes: size64})
	require.NoError(t, err)
	for name, kind := range entries {
		e := backup.Entry{Kind: kind, Name: name, Size: uint64(len(files[name]))}
		require.NoError(t, w.Entry(e, bytes.NewReader(files[name])))
	}
	require.NoError(t, w.Close())
	parent := t.TempDir()
	_, err = flashdb.Restore(context.Background(), &out, filepath.Join(parent, "db"), nil)
	require.ErrorIs(t, err, flashdb.ErrCorrupt)
	require.ErrorContains(t, err, "bbolt pages")
	require.Empty(t, names(t, parent))
}
