package parquet

import (
	"encoding/binary"
	"errors"
)

var (
	le      = binary.LittleEndian
	errEnds = errors.New("damaged: the page ends too early")
)

// runs reads numbers of a fixed width in Parquet's hybrid of runs and groups of eight packed
// numbers. It holds the run it is in and nothing else, so a long run of few bytes takes no memory.
type runs struct {
	b      []byte
	width  int    // bits of a number, at most 32
	left   uint64 // numbers left of the run
	packed packed // those of a packed run
	repeat bool
	value  uint32 // that of a repeated run
}

func (r *runs) next() (uint32, error) {
	for r.left == 0 {
		if err := r.run(); err != nil {
			return 0, err
		}
	}
	r.left--
	if r.repeat {
		return r.value, nil
	}
	v, err := r.packed.next(r.width)
	return uint32(v), err
}

// run reads the header of the next run.
func (r *runs) run() error {
	head, n := binary.Uvarint(r.b)
	if n <= 0 {
		return errEnds
	}
	r.b = r.b[n:]
	r.left, r.repeat = head>>1, head&1 == 0
	if r.repeat {
		size := (r.width + 7) / 8
		if len(r.b) < size {
			return errEnds
		}
		var wide [4]byte
		copy(wide[:], r.b[:size])
		r.value, r.b = le.Uint32(wide[:]), r.b[size:]
		return nil
	}
	groups := r.left
	if r.width > 0 {
		groups = min(groups, uint64(len(r.b)/r.width)+1) // some writers leave out the end of the last group
	}
	size := min(groups*uint64(r.width), uint64(len(r.b)))
	r.packed, r.b = packed{b: r.b[:size]}, r.b[size:]
	if r.left = groups * 8; r.width == 0 {
		r.repeat, r.value = true, 0
	}
	return nil
}

// packed reads numbers of some bits each, the lowest bits of a byte first.
type packed struct {
	b   []byte
	bit int // bits of b that are read
}

// next reads a number of width bits, at most 64.
func (p *packed) next(width int) (v uint64, err error) {
	if (len(p.b)<<3)-p.bit < width {
		return 0, errEnds
	}
	for got := 0; got < width; {
		off := p.bit & 7
		n := min(8-off, width-got)
		v |= uint64(p.b[p.bit>>3]>>off&(1<<n-1)) << got
		got += n
		p.bit += n
	}
	return v, nil
}

// delta reads integers as differences, DELTA_BINARY_PACKED:
//
//	values per block, miniblocks per block, values in all, the first value
//	a block: its least difference, the width of each miniblock, the miniblocks
//
// It holds one miniblock by reference.
type delta struct {
	b      []byte
	mini   int   // values of a miniblock
	minis  int   // miniblocks of a block
	total  int64 // values in all
	read   int64 // values read
	value  int64
	least  int64
	widths []byte // of the miniblocks of this block not yet begun
	packed packed
	width  int
	left   int // values left of the miniblock
}

// newDelta begins to read at most so many integers.
func newDelta(b []byte, values int64) (*delta, error) {
	d := &delta{b: b}
	block, minis, total := d.uvarint(), d.uvarint(), d.uvarint()
	d.value = d.zigzag()
	if d.b == nil {
		return nil, errEnds
	}
	const most = 1 << 16
	if block == 0 || block > most || minis == 0 || block%minis != 0 || block/minis%8 != 0 || total > uint64(values) {
		return nil, errors.New("damaged: differences in blocks of an impossible size, or more than the page has values")
	}
	d.mini, d.minis, d.total = int(block/minis), int(minis), int64(total)
	return d, nil
}

// uvarint reads a number; at the end of the bytes it leaves b nil.
func (d *delta) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b = nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *delta) zigzag() int64 {
	v := d.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (d *delta) next() (int64, error) {
	if d.read == d.total {
		return 0, errEnds
	}
	if d.read++; d.read == 1 {
		return d.value, nil
	}
	if d.left == 0 {
		if err := d.miniblock(); err != nil {
			return 0, err
		}
	}
	d.left--
	v, err := d.packed.next(d.width)
	d.value += d.least + int64(v)
	return d.value, err
}

// miniblock begins the next one, and the next block behind the last.
func (d *delta) miniblock() error {
	if len(d.widths) == 0 {
		if d.least = d.zigzag(); len(d.b) < d.minis {
			return errEnds
		}
		d.widths, d.b = d.b[:d.minis], d.b[d.minis:]
	}
	d.width, d.widths = int(d.widths[0]), d.widths[1:]
	if d.width > 64 {
		return errors.New("damaged: differences of more than 64 bits")
	}
	size := min(d.mini*d.width/8, len(d.b)) // some writers leave out the end of the last one
	d.packed, d.b = packed{b: d.b[:size]}, d.b[size:]
	d.left = d.mini
	return nil
}

// rest reads to the end and returns the bytes behind, and the sum of the values.
func (d *delta) rest() (b []byte, sum int64, err error) {
	for d.read < d.total {
		v, err := d.next()
		if err != nil {
			return nil, 0, err
		}
		if v < 0 || v > maxText {
			return nil, 0, errText
		}
		sum += v
	}
	return d.b, sum, nil
}
