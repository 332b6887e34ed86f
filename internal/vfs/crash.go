package vfs

import (
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
)

// CrashClone returns what a power failure at this moment could leave on disk: all that was synced,
// and of the rest a random part. A file keeps either a prefix of what was written since its Sync,
// cut anywhere, or scattered sectors of it, with zeros between them where the file grew. A
// directory keeps any of its changes since its SyncDir, a rename being kept whole or not at all.
// Equal generators give equal clones. In the clone everything is synced; m is not changed.
func (m *Mem) CrashClone(rng *rand.Rand) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &crash{rng: rng, made: make(map[node]node)}
	return &Mem{mu: new(sync.Mutex), root: c.dir(m.root), fold: m.fold, keep: m.keep}
}

// crash is the making of one clone.
type crash struct {
	rng  *rand.Rand
	made map[node]node // original -> clone: a half-synced rename leaves one file under two names
}

func (c *crash) dir(d *memDir) *memDir {
	names := maps.Clone(d.durable)
	if c.rng.IntN(2) == 0 {
		for _, change := range d.pending[:c.rng.IntN(len(d.pending)+1)] {
			change.apply(names)
		}
	} else {
		for _, change := range d.pending {
			if c.rng.IntN(2) == 0 {
				change.apply(names)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) { // sorted: the generator's numbers must meet the same nodes
		names[name] = c.node(names[name])
	}
	return &memDir{names: names, durable: maps.Clone(names)}
}

func (c *crash) node(n node) node {
	if done, ok := c.made[n]; ok {
		return done
	}
	var clone node
	switch n := n.(type) {
	case *memDir:
		clone = c.dir(n)
	case *memFile:
		data := c.content(n)
		clone = &memFile{data: data, durable: slices.Clone(data)}
	}
	c.made[n] = clone
	return clone
}

// content returns what the crash leaves of a file.
func (c *crash) content(f *memFile) []byte {
	data := slices.Clone(f.durable)
	if c.rng.IntN(2) == 0 {
		return c.prefix(data, f.pending)
	}
	return c.scatter(data, f.pending)
}

// prefix makes the first changes, the last of them in part.
func (c *crash) prefix(data []byte, pending []fileChange) []byte {
	whole := c.rng.IntN(len(pending) + 1)
	for _, change := range pending[:whole] {
		data = change.apply(data)
	}
	if whole == len(pending) {
		return data
	}
	torn := pending[whole]
	if torn.truncate {
		return data
	}
	torn.bytes = torn.bytes[:c.rng.IntN(len(torn.bytes)+1)]
	return torn.apply(data)
}

// scatter makes each change sector by sector, or leaves the sector as it was. Besides sectors and
// pages it uses a size no disk has, so that small test files are torn in the middle as well.
func (c *crash) scatter(data []byte, pending []fileChange) []byte {
	sector := []int64{16, 512, 4096}[c.rng.IntN(3)]
	for _, change := range pending {
		if change.truncate {
			if c.rng.IntN(2) == 0 {
				data = change.apply(data)
			}
			continue
		}
		for rest := change; len(rest.bytes) > 0; {
			n := min(int64(len(rest.bytes)), sector-rest.off%sector)
			if c.rng.IntN(2) == 0 {
				data = fileChange{off: rest.off, bytes: rest.bytes[:n]}.apply(data)
			}
			rest.off += n
			rest.bytes = rest.bytes[n:]
		}
	}
	return data
}
