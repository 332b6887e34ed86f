package storage

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// layerOf returns a layer that mentions the keys from one number to another, with the number v.
func layerOf(from, to int, v uint32) *layer {
	l := newLayer()
	for i := from; i < to; i++ {
		l.ids[nameKey{1, fmt.Sprint(i)}] = idOf{v, true}
	}
	return l
}

func TestPush(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 8 {
		var layers []*layer
		pinned := 0
		want := map[nameKey]idOf{}
		for v := range uint32(120) {
			from := rng.IntN(200)
			l := layerOf(from, from+1+rng.IntN(10), v)
			for k, id := range l.ids {
				want[k] = id
			}
			before := layers
			sizes := make([]int, len(before))
			for i, l := range before {
				sizes[i] = l.len()
			}
			layers = push(layers, pinned, l)

			for i := range pinned {
				require.Same(t, before[i], layers[i], "pinned layers stay")
			}
			for i, l := range before {
				require.Equal(t, sizes[i], l.len(), "published layers are not changed")
			}
			for i := pinned + 1; i < len(layers); i++ {
				require.Greater(t, layers[i-1].len(), layers[i].len())
			}
			require.Equal(t, want, flatten(layers).ids)
			if rng.IntN(40) == 0 {
				pinned = len(layers)
			}
		}
	}
}

// Each layer is larger than the next, but not by much if the changes are alike: there must be few
// of them.
func TestPushKeepsFewLayers(t *testing.T) {
	var layers []*layer
	for i := range 4096 {
		layers = push(layers, 0, layerOf(i, i+1, 0))
		require.LessOrEqual(t, len(layers), 13)
	}
	assert.Len(t, layers, 1)
	assert.Equal(t, 4096, layers[0].len())
	assert.Equal(t, layers[0].size(), layers[0].bytes)
}

// A reader that loaded a state before a flush began must not use it with a transaction begun later.
func TestBeginRefusesStaleState(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "flash.db"), &Options{NoSync: true})
	require.NoError(t, err)
	defer s.Close()
	publish := func(lsn uint64, op Op) {
		c := s.Begin()
		require.NoError(t, c.Apply(op, lsn))
		s.Stage(c)
		s.Publish()
	}
	publish(1, CreateCollection{UID: 1, Name: "c", Schema: Schema{Dim: 1}})
	before := s.state.Load()
	publish(2, SetMeta{UID: 1, Name: "a", Value: "b"})
	r, err := s.begin(before)
	require.NoError(t, err)
	require.NotNil(t, r.tx, "a state stays good while others are published")
	require.NoError(t, r.tx.Rollback())

	_, err = s.Flush()
	require.NoError(t, err)
	r, err = s.begin(before)
	require.NoError(t, err)
	if r.tx != nil {
		t.Error("bbolt has more than the state by now")
		require.NoError(t, r.tx.Rollback())
	}

	r, err = s.begin(s.state.Load())
	require.NoError(t, err)
	require.NotNil(t, r.tx)
	require.NoError(t, r.tx.Rollback())
}

// A Changes that nobody finishes must not keep the file from growing, and one that is still used
// must find everything.
func TestFlushTakesLease(t *testing.T) {
	s, err := Open(filepath.Join(t.TempDir(), "flash.db"), &Options{NoSync: true})
	require.NoError(t, err)
	defer s.Close()
	loadNodes(t, s, 100, 1, 10)
	c := s.Begin()
	find := func(id uint32) {
		key, ok := c.Key(1, id)
		require.True(t, ok)
		got, ok := c.ID(1, key)
		require.True(t, ok)
		require.Equal(t, id, got)
	}
	find(3)
	require.NotNil(t, c.tx)
	require.NoError(t, s.PublishGeneration(1, 1, 1))
	require.Nil(t, c.tx)
	find(99)
	require.NotNil(t, c.tx)
	require.NoError(t, c.Apply(DeleteNode{UID: 1, ID: 99}, s.Applied()+1))
	s.Stage(c)
	s.Publish()
	require.Nil(t, c.tx)
}

// Runs that are added one by one, to two collections in turn, are found.
func TestAddRun(t *testing.T) {
	l := newLayer()
	const each, runs = 5, 40
	key := func(uid, id uint32) string { return fmt.Sprint(uid, "/", id) }
	for n := range uint32(runs) {
		for _, uid := range []uint32{2, 1} {
			r := &run{uid: uid, first: n * each, dim: 1}
			keys := newKeyTable(each)
			for id := r.first; id < r.first+each; id++ {
				r.add(PutNode{Key: key(uid, id), Row: []float32{float32(id)}}, nil)
				keys.insert(hashKey(uid, key(uid, id)), id)
			}
			l.addRun(r, keys)
		}
	}
	for _, uid := range []uint32{1, 2} {
		for id := range uint32(runs * each) {
			k := nameKey{uid, key(uid, id)}
			v, ok := l.id(k, hashKey(uid, k.name))
			require.True(t, ok, k)
			require.Equal(t, idOf{id, true}, v)
			n, ok := l.node(nodeKey{uid, id})
			require.True(t, ok)
			require.Equal(t, []float32{float32(id)}, n.row)
		}
	}
	require.Len(t, l.runs, 2*runs)
	require.Equal(t, 2*runs*each, l.keys.used)
}
