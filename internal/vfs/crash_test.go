package vfs

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// outcomes crashes m many times and returns which outcomes describe found.
func outcomes(t *testing.T, m *Mem, describe func(*Mem) string) []string {
	t.Helper()
	var found []string
	for seed := range uint64(500) {
		got := describe(m.CrashClone(rand.New(rand.NewPCG(seed, 1))))
		again := describe(m.CrashClone(rand.New(rand.NewPCG(seed, 1))))
		require.Equal(t, got, again, "seed %d", seed)
		if !slices.Contains(found, got) {
			found = append(found, got)
		}
	}
	slices.Sort(found)
	return found
}

func names(t *testing.T, m *Mem, dir string) string {
	list, err := m.ReadDir(dir)
	if err != nil {
		return "-"
	}
	return strings.Join(list, " ")
}

func TestCrashKeepsAnyPartOfUnsyncedNames(t *testing.T) {
	tests := []struct {
		name   string
		synced func(m *Mem)
		after  func(t *testing.T, m *Mem)
		want   []string
	}{
		{
			"created files",
			func(m *Mem) {},
			func(t *testing.T, m *Mem) { put(t, m, "d/a", ""); put(t, m, "d/b", "") },
			[]string{"", "a", "a b", "b"},
		},
		{
			"removed file",
			func(m *Mem) { put(t, m, "d/a", "") },
			func(t *testing.T, m *Mem) { require.NoError(t, m.Remove("d/a")) },
			[]string{"", "a"},
		},
		{
			"rename is atomic",
			func(m *Mem) { put(t, m, "d/a", ""); put(t, m, "d/b", "") },
			func(t *testing.T, m *Mem) { require.NoError(t, m.Rename("d/a", "d/b")) },
			[]string{"a b", "b"},
		},
		{
			"new directory",
			func(m *Mem) {},
			func(t *testing.T, m *Mem) { require.NoError(t, m.MkdirAll("d/e")) },
			[]string{"", "e"},
		},
		{
			"rename to elsewhere may leave both names",
			func(m *Mem) { put(t, m, "d/a", "") },
			func(t *testing.T, m *Mem) { require.NoError(t, m.Rename("d/a", "x")) },
			[]string{"", "a"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := NewMem()
			require.NoError(t, m.MkdirAll("d"))
			require.NoError(t, m.SyncDir("."))
			tt.synced(m)
			require.NoError(t, m.SyncDir("d"))
			before := names(t, m, "d")
			assert.Equal(t, []string{before}, outcomes(t, m, func(c *Mem) string { return names(t, c, "d") }), "synced")
			tt.after(t, m)
			assert.Equal(t, tt.want, outcomes(t, m, func(c *Mem) string { return names(t, c, "d") }))
		})
	}
}

func TestCrashKeepsAnyPartOfUnsyncedBytes(t *testing.T) {
	m := NewMem()
	f, err := m.Create("f")
	require.NoError(t, err)
	_, err = f.Write([]byte("durable."))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, m.SyncDir("/"))
	assert.Equal(t, []string{"durable."}, outcomes(t, m, func(c *Mem) string { return get(t, c, "f") }))

	_, err = f.Write(bytes.Repeat([]byte("x"), 40))
	require.NoError(t, err)
	found := outcomes(t, m, func(c *Mem) string { return get(t, c, "f") })
	assert.Contains(t, found, "durable.")
	assert.Contains(t, found, "durable.xxx", "cut anywhere")
	assert.Contains(t, found, "durable."+strings.Repeat("x", 40))
	assert.Contains(t, found, "durable."+strings.Repeat("\x00", 8)+strings.Repeat("x", 16), "a hole")
	for _, got := range found {
		assert.True(t, strings.HasPrefix(got, "durable."), "%q", got)
	}

	require.NoError(t, f.Truncate(2))
	found = outcomes(t, m, func(c *Mem) string { return get(t, c, "f") })
	assert.Contains(t, found, "du")
	assert.Contains(t, found, "durable.")
	require.NoError(t, f.Sync())
	assert.Equal(t, []string{"du"}, outcomes(t, m, func(c *Mem) string { return get(t, c, "f") }))
}

func TestCrashNeedsBothSyncs(t *testing.T) {
	m := NewMem()
	f, err := m.Create("f")
	require.NoError(t, err)
	_, err = f.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	assert.Equal(t, []string{"", "f"}, outcomes(t, m, func(c *Mem) string { return names(t, c, ".") }), "the name was not synced")
}

func TestCrashCloneIsIndependent(t *testing.T) {
	m := NewMem()
	put(t, m, "f", "before")
	f, err := m.OpenRW("f")
	require.NoError(t, err)
	require.NoError(t, f.Sync())
	require.NoError(t, m.SyncDir("."))
	c := m.CrashClone(rand.New(rand.NewPCG(1, 2)))
	_, err = f.WriteAt([]byte("BEFORE"), 0)
	require.NoError(t, err)
	require.NoError(t, m.Remove("f"))
	assert.Equal(t, "before", get(t, c, "f"))
	assert.Equal(t, "before", get(t, c.CrashClone(rand.New(rand.NewPCG(1, 2))), "f"), "a clone is synced")
}
