package storage

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"

	"github.com/flashdb/flashdb/internal/format"
)

// FuzzBlocks reads blocks of any bytes: they are refused, or every entry is where it should be and
// dirty ones are written as they were.
func FuzzBlocks(f *testing.F) {
	var d dirtyIDs
	d.set(0, 5)
	d.set(63, 5)
	f.Add(d.encode(nil), 2)
	d.set(7, 9)
	f.Add(d.encode(nil), 64)
	f.Add(append(binary.LittleEndian.AppendUint64(nil, 5), make([]byte, 24)...), 1)
	f.Add([]byte{1, 2, 3}, 1)
	db, err := bolt.Open(filepath.Join(f.TempDir(), "db"), 0o600, nil) // errors name an offset in a file
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, db.Close()) })
	tx, err := db.Begin(true)
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, tx.Rollback()) })
	bkt, err := tx.CreateBucket([]byte("rows"))
	require.NoError(f, err)
	rows := table{Bucket: bkt, layout: formatVersion}
	f.Fuzz(func(t *testing.T, value []byte, dim int) {
		dim = 1 + dim&1023
		size := rowsPerBlock(dim)
		// The fuzzer does not find checksums: the bytes are a mask and what is behind its seal.
		at := min(maskBytes, len(value))
		stored := append(table{layout: formatVersion}.seal([]byte("key"), bytes.Clone(value[:at])), value[at:]...)
		if b, err := rows.rowBlock([]byte("key"), stored, size, dim); err == nil {
			require.NotZero(t, b.mask)
			require.LessOrEqual(t, bits.Len64(b.mask), size)
			var all []byte
			for i := range b.all() {
				require.True(t, b.has(i))
				all = append(all, b.sealed(i)...)
				_, err := b.row(rows, new([4]byte), 7, i)
				want := format.CRC(append([]byte{0, 0, 0, 7}, b.sealed(i)[:4*dim]...)) == binary.LittleEndian.Uint32(b.sealed(i)[4*dim:])
				require.Equal(t, want, err == nil)
			}
			require.True(t, bytes.Equal(value[maskBytes:], all))
		}
		if d, err := decodeDirty(value); err == nil {
			again := d.encode(nil)
			require.Len(t, again, d.encodedSize())
			back, err := decodeDirty(again)
			require.NoError(t, err)
			require.Equal(t, d, back)
			if len(value) == len(again) {
				require.True(t, bytes.Equal(value, again))
			}
		}
	})
}

func TestDirtyIDs(t *testing.T) {
	var d dirtyIDs
	assert.Empty(t, d.encode(nil))
	for i := range dirtyBlock {
		d.set(i, 7)
	}
	assert.Len(t, d.encode(nil), 16, "one LSN for all")
	d.set(40, 8)
	assert.Len(t, d.encode(nil), 8+8*64)
	for i := range dirtyBlock {
		if i != 40 {
			d.remove(i)
		}
	}
	back, err := decodeDirty(d.encode(nil))
	require.NoError(t, err)
	assert.Equal(t, uint64(1)<<40, back.mask)
	assert.Equal(t, uint64(8), back.lsns[40])
}

// The writer looks up keys while a flush writes: it does not wait for it, and does not keep it from
// making the file grow.
func TestLookupsDuringAFlush(t *testing.T) {
	s, err := Open(t.TempDir()+"/flash.db", &Options{NoSync: true})
	require.NoError(t, err)
	defer s.Close()
	c := s.Begin()
	require.NoError(t, c.Apply(CreateCollection{UID: 1, Name: "c", Schema: Schema{Dim: 1}}, 1))
	require.NoError(t, c.Apply(PutNode{UID: 1, ID: 0, Key: "a", Row: []float32{1}}, 1))
	s.Stage(c)
	s.Publish()
	_, err = s.Flush()
	require.NoError(t, err)

	before := s.Begin()
	_, ok := before.ID(1, "a") // opens a transaction
	require.True(t, ok)
	require.NoError(t, s.update(func(tx *bolt.Tx) error {
		require.Nil(t, before.tx, "bbolt would wait for it")
		_, ok := before.ID(1, "a")
		require.True(t, ok)
		require.Nil(t, before.tx)
		c := s.Begin()
		nodes := PutNodes{{UID: 1, Key: "b"}, {UID: 1, Key: "a"}, {UID: 1, Key: "b"}}
		require.NoError(t, c.Resolve(1, nodes))
		require.Equal(t, []uint32{1, 0, 1}, []uint32{nodes[0].ID, nodes[1].ID, nodes[2].ID})
		require.Nil(t, c.tx)
		return tx.Bucket(bucketOfMeta).Put([]byte("x"), make([]byte, 1<<20)) // the file grows
	}))
	c = s.Begin()
	_, ok = c.ID(1, "a")
	require.True(t, ok)
	require.NotNil(t, c.tx, "kept for the next lookup")
}
