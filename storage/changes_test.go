package storage_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/flashdb/flashdb/storage"
)

func TestApplyRefuses(t *testing.T) {
	long := strings.Repeat("k", 5000)
	row := []float32{1, 2}
	tests := []struct {
		name   string
		op     storage.Op
		target error
		want   string
	}{
		{"create: wrong UID", storage.CreateCollection{UID: 9, Name: "n", Schema: storage.Schema{Dim: 1}}, nil, "UID is 9, want 2"},
		{"create: name in use", storage.CreateCollection{UID: 2, Name: "papers", Schema: storage.Schema{Dim: 1}}, nil, "in use"},
		{"create: no name", storage.CreateCollection{UID: 2, Schema: storage.Schema{Dim: 1}}, nil, `name ""`},
		{"create: dim 0", storage.CreateCollection{UID: 2, Name: "n"}, nil, "dim is 0"},
		{"create: huge dim", storage.CreateCollection{UID: 2, Name: "n", Schema: storage.Schema{Dim: 1 << 21}}, nil, "dim is 2097152"},
		{"drop: unknown", storage.DropCollection{UID: 5}, storage.ErrNotFound, "UID 5"},
		{"put: unknown collection", storage.PutNode{UID: 5, Key: "k", Row: row}, storage.ErrNotFound, "UID 5"},
		{"put: wrong dimension", storage.PutNode{UID: 1, ID: 3, Key: "k", Row: row[:1]}, nil, `put node "k" into "papers": row has 1 values, want 2`},
		{"put: no key", storage.PutNode{UID: 1, ID: 3, Row: row}, nil, "key has 0 bytes"},
		{"put: long key", storage.PutNode{UID: 1, ID: 3, Key: long, Row: row}, nil, "key has 5000 bytes"},
		{"put: empty tag", storage.PutNode{UID: 1, ID: 3, Key: "k", Row: row, Tags: []string{""}}, nil, "tag has 0 bytes"},
		{"put: id too far", storage.PutNode{UID: 1, ID: 4, Key: "k", Row: row}, nil, "not the next one, which is 3"},
		{"put: id of a deleted node", storage.PutNode{UID: 1, ID: 2, Key: "c", Row: row}, nil, "id 2 is deleted"},
		{"put: id of another key", storage.PutNode{UID: 1, ID: 0, Key: "b", Row: row}, nil, `id 0 belongs to "a"`},
		{"delete: deleted", storage.DeleteNode{UID: 1, ID: 2}, storage.ErrNotFound, "id 2"},
		{"delete: unknown", storage.DeleteNode{UID: 1, ID: 99}, storage.ErrNotFound, "id 99"},
		{"delete: unknown collection", storage.DeleteNode{UID: 5}, storage.ErrNotFound, "UID 5"},
		{"link: deleted source", storage.Link{UID: 1, Source: 2, Targets: []uint32{0}}, storage.ErrNotFound, "id 2"},
		{"link: deleted target", storage.Link{UID: 1, Source: 0, Targets: []uint32{1, 2}}, storage.ErrNotFound, "id 2"},
		{"link: unknown target", storage.Link{UID: 1, Source: 0, Targets: []uint32{7}}, storage.ErrNotFound, "id 7"},
		{"link: unknown collection", storage.Link{UID: 5}, storage.ErrNotFound, "UID 5"},
		{"unlink: deleted source", storage.Unlink{UID: 1, Source: 2}, storage.ErrNotFound, "id 2"},
		{"unlink: unknown collection", storage.Unlink{UID: 5}, storage.ErrNotFound, "UID 5"},
		{"decoder: no name", storage.PutDecoder{UID: 1}, nil, "decoder name has 0 bytes"},
		{"decoder: unknown collection", storage.PutDecoder{UID: 5, Name: "d"}, storage.ErrNotFound, "UID 5"},
		{"drop decoder: unknown", storage.DropDecoder{UID: 1, Name: "d"}, storage.ErrNotFound, `drop decoder "d"`},
		{"plans: no decoder", storage.SetPlans{UID: 1, Name: "d"}, storage.ErrNotFound, `set plans of decoder "d"`},
		{"plans: unknown collection", storage.SetPlans{UID: 5, Name: "d"}, storage.ErrNotFound, "UID 5"},
		{"drop decoder: unknown collection", storage.DropDecoder{UID: 5, Name: "d"}, storage.ErrNotFound, "UID 5"},
		{"meta: no name", storage.SetMeta{UID: 1}, nil, "meta name has 0 bytes"},
	}
	s := open(t, newPath(t))
	sample(t, s)
	for _, flushed := range []bool{false, true} {
		if flushed {
			flush(t, s)
		}
		for _, tt := range tests {
			c := s.Begin()
			err := c.Apply(tt.op, 2)
			require.Error(t, err, tt.name)
			if tt.target != nil {
				assert.ErrorIs(t, err, tt.target, tt.name)
			}
			assert.ErrorContains(t, err, tt.want, tt.name)
			assert.Equal(t, err, c.Apply(storage.SetMeta{UID: 1, Name: "a"}, 2), "the first error stays")
			assert.Panics(t, func() { s.Stage(c) }, tt.name)
		}
	}
	assert.Equal(t, uint64(1), s.Applied())
	assert.Zero(t, s.Pending(), "nothing was changed")
}

func TestLSNsAscend(t *testing.T) {
	s := open(t, newPath(t))
	set := func(lsn uint64) error {
		c := s.Begin()
		err := c.Apply(storage.SetMeta{UID: 1, Name: "n", Value: fmt.Sprint(lsn)}, lsn)
		if err == nil {
			s.Stage(c)
		}
		return err
	}
	sample(t, s)
	assert.ErrorContains(t, set(1), "change 1 was applied before")
	require.NoError(t, set(4))
	assert.ErrorContains(t, set(4), "change 4 was applied before", "staged counts")
	require.NoError(t, set(5))
	s.Discard()
	require.NoError(t, set(4), "discarded does not")
	s.Publish()
	applied, err := s.Flush()
	require.NoError(t, err)
	assert.Equal(t, uint64(4), applied)
	assert.ErrorContains(t, set(4), "applied before")

	c := s.Begin()
	require.NoError(t, c.Apply(storage.SetMeta{UID: 1, Name: "n"}, 9))
	require.NoError(t, c.Apply(storage.SetMeta{UID: 1, Name: "m"}, 9))
	assert.ErrorContains(t, c.Apply(storage.SetMeta{UID: 1, Name: "m"}, 8), "applied before")
}

func TestStagingIsNotPublishing(t *testing.T) {
	s := open(t, newPath(t))
	sample(t, s)
	put := storage.PutNode{UID: 1, ID: 3, Key: "d", Row: []float32{7, 8}}
	stage(t, s, 2, put)
	sees := func(g getters) bool {
		_, ok := g.ID(1, "d")
		info, _ := g.Collection("papers")
		assert.Equal(t, ok, info.NextID == 4)
		return ok
	}
	seesView := func() (ok bool) {
		require.NoError(t, s.View(func(v *storage.View) error { ok = sees(v); return nil }))
		return ok
	}
	assert.True(t, sees(s.Begin()))
	assert.False(t, seesView())
	flush(t, s)
	assert.Equal(t, uint64(1), s.Applied(), "what is staged is not flushed")
	s.Discard()
	assert.False(t, sees(s.Begin()))
	stage(t, s, 2, put)
	s.Publish()
	s.Publish()
	assert.True(t, seesView())
	s.Discard()
	assert.True(t, seesView(), "published is published")
}

func TestStagePanics(t *testing.T) {
	s := open(t, newPath(t))
	sample(t, s)
	first := s.Begin()
	second := s.Begin()
	assert.Panics(t, func() { s.Stage(first) }, "another was begun")
	s.Stage(second)
	assert.Panics(t, func() { s.Stage(second) }, "staged already")
	assert.Panics(t, func() { _ = second.Apply(storage.DropCollection{UID: 1}, 5) }, "it has ended")
}

// Apply must copy what it keeps: callers reuse rows and payloads.
func TestApplyCopies(t *testing.T) {
	s := open(t, newPath(t))
	sample(t, s)
	row, payload, blob, tags := []float32{1, 1}, []byte("pay"), []byte("blob"), []string{"one"}
	c := s.Begin()
	require.NoError(t, c.Apply(storage.PutNode{UID: 1, ID: 3, Key: "d", Row: row, Tags: tags, Payload: payload}, 2))
	require.NoError(t, c.Apply(storage.PutDecoder{UID: 1, Name: "d", Blob: blob}, 2))
	row[0], payload[0], blob[0], tags[0] = 9, 'X', 'X', "other"
	s.Stage(c)
	s.Publish()
	require.NoError(t, s.View(func(v *storage.View) error {
		got := make([]float32, 2)
		require.True(t, v.Row(got, 1, 3))
		assert.Equal(t, []float32{1, 1}, got)
		n, _ := v.Node(1, 3)
		assert.Equal(t, storage.Node{Key: "d", Tags: []string{"one"}, Payload: []byte("pay")}, n)
		d, _ := v.Decoder(1, "d")
		assert.Equal(t, "blob", string(d))
		return nil
	}))
}

// Pointers to operations are operations too.
func TestApplyPointer(t *testing.T) {
	s := open(t, newPath(t))
	sample(t, s)
	commit(t, s, 2, &storage.DeleteNode{UID: 1, ID: 0})
	require.NoError(t, s.View(func(v *storage.View) error {
		_, ok := v.ID(1, "a")
		assert.False(t, ok)
		return nil
	}))
}

// A collection may be dropped and made again under its name before anything is flushed, and after.
func TestDropAndRecreate(t *testing.T) {
	s := open(t, newPath(t))
	sample(t, s)
	recreate := func(uid uint32) []storage.Op {
		return []storage.Op{
			storage.DropCollection{UID: uid - 1},
			storage.CreateCollection{UID: uid, Name: "papers", Schema: storage.Schema{Dim: 1}},
			storage.PutNode{UID: uid, ID: 0, Key: "new", Row: []float32{float32(uid)}},
		}
	}
	check := func(uid uint32) {
		require.NoError(t, s.View(func(v *storage.View) error {
			info, ok := v.Collection("papers")
			require.True(t, ok)
			assert.Equal(t, storage.Info{UID: uid, Name: "papers", Schema: storage.Schema{Dim: 1}, Count: 1, NextID: 1, Rows: 1}, info)
			_, ok = v.ID(uid-1, "a")
			assert.False(t, ok)
			_, ok = v.Node(uid-1, 0)
			assert.False(t, ok)
			assert.Nil(t, v.Links(uid-1, 0, uid-1))
			assert.Nil(t, v.Tag(uid-1, "x"))
			assert.Empty(t, v.Tags(uid-1))
			assert.Empty(t, v.Decoders(uid-1))
			_, ok = v.Meta(uid-1, "origin")
			assert.False(t, ok)
			return nil
		}))
	}
	commit(t, s, 2, recreate(2)...)
	check(2)
	flush(t, s)
	check(2)
	assertClean(t, s)
	commit(t, s, 3, recreate(3)...)
	check(3)
	flush(t, s)
	check(3)
	assert.ErrorIs(t, s.PublishGeneration(2, 1, 1), storage.ErrNotFound)
	assert.ErrorIs(t, s.Rows(t.Context(), 2, 0, nil), storage.ErrNotFound)
	assert.ErrorIs(t, s.Dirty(2, nil), storage.ErrNotFound)
}

// TestLSNOfACollection: a View knows the last change to each collection since Open, of whatever
// kind.
func TestLSNOfACollection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flash.db")
	s, err := storage.Open(path, nil)
	require.NoError(t, err)
	lsn := uint64(0)
	do := func(ops ...storage.Op) {
		lsn++
		commit(t, s, lsn, ops...)
	}
	want := func(uid uint32, lsn uint64) {
		t.Helper()
		require.NoError(t, s.View(func(v *storage.View) error {
			require.Equal(t, lsn, v.LSN(uid))
			return nil
		}))
	}
	do(storage.CreateCollection{UID: 1, Name: "a", Schema: storage.Schema{Dim: 1}})
	do(storage.CreateCollection{UID: 2, Name: "b", Schema: storage.Schema{Dim: 1}})
	do(storage.PutNode{UID: 1, ID: 0, Key: "x", Row: []float32{1}}, storage.PutNode{UID: 1, ID: 1, Key: "y", Row: []float32{1}})
	want(1, 3)
	want(2, 2)
	do(storage.Link{UID: 1, Source: 0, Targets: []uint32{1}})
	want(1, 4)
	do(storage.SetMeta{UID: 2, Name: "m", Value: "v"})
	want(2, 5)
	_, err = s.Flush()
	require.NoError(t, err)
	want(1, 4)
	do(storage.DropCollection{UID: 2})
	want(2, 0)
	require.NoError(t, s.Close())
	s, err = storage.Open(path, nil)
	require.NoError(t, err)
	want(1, 0)
	require.NoError(t, s.Close())
}

// A file made on purpose may have a plain value where a bucket belongs. A flush says so.
func TestFlushIntoAValue(t *testing.T) {
	for _, name := range []string{"keys", "rows", "dirty"} {
		path := sampleFile(t)
		edit(t, path, func(tx *bolt.Tx) error {
			col := tx.Bucket([]byte("c")).Bucket([]byte{0, 0, 0, 1})
			if err := col.DeleteBucket([]byte(name)); err != nil {
				return err
			}
			return col.Put([]byte(name), []byte("value"))
		})
		s, err := storage.Open(path, &storage.Options{NoSync: true})
		require.NoError(t, err)
		commit(t, s, 2, storage.PutNode{UID: 1, ID: 3, Key: "new", Row: []float32{7, 8}})
		_, err = s.Flush()
		assert.ErrorIs(t, err, bolterrors.ErrIncompatibleValue, name)
		require.NoError(t, s.Close())
	}
}
