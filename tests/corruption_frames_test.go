package tests

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flashdb/flashdb/internal/attempts"
)

// A frame is where a file says how it is to be read: runs of bytes that lead to others, and the
// offsets at which one part ends and the next begins.
type frame struct {
	leading []span
	unused  []span // of pages that lead; a change of it should change nothing
	borders []int
}

// A span is the bytes from one offset to before another.
type span struct{ from, to int }

// part adds a run of bytes that is not looked into but for its ends.
func (f *frame) part(from, to int) {
	const edge = 8
	f.leading = append(f.leading, span{from, min(from+edge, to)}, span{max(from, to-edge), to})
	f.borders = append(f.borders, from, to)
}

func (f *frame) lead(from, to int) {
	f.leading = append(f.leading, span{from, to})
	f.borders = append(f.borders, from, to)
}

// frameOf reads the frame of a file of an image, by the layouts that docs/format.md and the
// packages that own them describe.
func frameOf(name string, data []byte) frame {
	u32 := func(at int) int { return int(binary.LittleEndian.Uint32(data[at:])) }
	u64 := func(at int) int { return int(binary.LittleEndian.Uint64(data[at:])) }
	var f frame
	switch {
	case name == "flash.db":
		const pageHeader, meta = 16, 64 // of bbolt; the page size is in the meta, and so is the number of pages
		pageSize := u32(pageHeader + 8)
		for page := range 2 {
			at := page * pageSize
			f.lead(at, at+pageHeader+meta)
			f.unused = append(f.unused, span{at + pageHeader + meta, at + pageSize})
		}
		newer := 0
		if u64(pageSize+pageHeader+48) > u64(pageHeader+48) { // the transaction that wrote it
			newer = pageSize
		}
		for _, page := range []int{u64(newer + pageHeader + 16), u64(newer + pageHeader + 32)} { // the root bucket, the free pages
			f.lead(page*pageSize, page*pageSize+pageHeader)
			f.part(page*pageSize+pageHeader, (page+1)*pageSize)
		}
		f.borders = append(f.borders, u64(newer+pageHeader+40)*pageSize)
	case strings.HasSuffix(name, ".ivf"):
		const header, entry = 96, 32
		f.lead(0, header)
		for i := range u32(12) {
			at := header + i*entry
			f.lead(at, at+entry)
			f.part(u64(at+8), u64(at+8)+u64(at+16))
		}
	case strings.HasPrefix(name, "wal/"):
		const record = 24
		f.lead(0, logHeader)
		for at := logHeader; at < len(data); {
			end := at + record + u32(at+4)
			f.lead(at, at+record)
			f.part(at+record, end)
			at = end
		}
	default: // owner.pid
		f.lead(0, len(data))
	}
	f.borders = append(f.borders, len(data))
	slices.Sort(f.borders)
	f.borders = slices.Compact(f.borders)
	return f
}

// mutations lists every damage to the frame: each byte with one bit flipped, with all of them, and
// zero; the file cut at each border and a byte to either side; and longer.
func (f *frame) mutations(name string, data []byte) []mutation {
	var all []mutation
	seen := map[int]bool{}
	for _, s := range f.leading {
		for at := s.from; at < s.to; at++ {
			if seen[at] {
				continue
			}
			seen[at] = true
			all = append(all, mutation{name, at, "flip", 1}, mutation{name, at, "invert", 1})
			if data[at] != 0 {
				all = append(all, mutation{name, at, "zero", 1})
			}
		}
	}
	for _, b := range f.borders {
		for at := max(0, b-1); at <= min(b+1, len(data)-1); at++ {
			all = append(all, mutation{name, at, "truncate", 1})
		}
	}
	for _, n := range []int{1, 8, 24, 4096} {
		all = append(all, mutation{name, len(data), "extend", n}, mutation{name, len(data), "extend with junk", n})
	}
	return all
}

// flips lists a flipped bit in each unused byte.
func (f *frame) flips(name string) []mutation {
	var all []mutation
	for _, s := range f.unused {
		for at := s.from; at < s.to; at++ {
			all = append(all, mutation{name, at, "flip", 1})
		}
	}
	return all
}

// TestCorruptionOfFrames damages what leads to everything else in every kind of file: headers, the
// section table, both headers of bbolt, the ends of sections and records. A short run takes some of
// the damages, evenly; with FLASHDB_EXHAUSTIVE set it takes all. Package internal/backup damages
// every byte of its stream.
func TestCorruptionOfFrames(t *testing.T) {
	short := 40
	if testing.Short() {
		short = 8
	}
	exhaustive := os.Getenv("FLASHDB_EXHAUSTIVE") != ""
	seed := envNumber(t, "FLASHDB_SEED", 1)
	im := newImage(t, 300, 7)
	for name, data := range im.files {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			f := frameOf(name, data)
			all := f.mutations(name, data)
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(len(name))))
			stride := 1
			if exhaustive {
				all = append(all, f.flips(name)...)
			} else {
				stride = max(1, len(all)/short)
			}
			count := map[outcome]int{}
			tried := 0
			for i := rng.IntN(stride); i < len(all); i += stride {
				tried++
				count[im.judge(t, all[i], rng)]++
			}
			attempts.Count(t, tried, "files damaged")
			t.Logf("%d of %d damages, FLASHDB_SEED=%d: %s", tried, len(all), seed, fmt.Sprint(count))
		})
	}
}
