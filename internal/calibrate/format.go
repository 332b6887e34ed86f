package calibrate

import (
	"math"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/format"
)

// The blob of a set of calibrations, little-endian:
//
//	+--------+-----------+-----------------+-----------------+----------+
//	| "fcal" | version   | calibrations    | calibration ... | CRC32C   |
//	| 4      | uint32, 5 | uvarint         |                 | uint32   |
//	+--------+-----------+-----------------+-----------------+----------+
//
//	calibration:  generation, build LSN (uvarint each), hash of the decoder's blob (uint64), collection of the sources
//	              (string), rows, sources (uvarint each), seconds of an exact scan (float64),
//	              frontiers (uvarint count, then each), dim of the seeds (uvarint; 0: none), and, if there are any, the seeds,
//	              as package flashlight writes them
//	frontier:     k (uvarint), points (uvarint count, then each)
//	point:        seed (uint8: 0 ones, 1 source, 2 both, 3 learned, 4 learned+ones, 5 components), anchors from (uint8: 0 round, 1 all, 2 both, 3 round+ones),
//	              anchors, rounds, rows per round, patience, growth (uvarint each), tail, probed share of the rows,
//	              mean, p5, worst and bound of the recall, rows scored, codes scanned, seconds (float64 each),
//	              relation with the lowest mean (string; empty: none), that mean (float64)
//
// Version 1 has no growth: it reads as 0, the default of a plan. Versions 1 and 2 have no seeds,
// and no plans with learned ones. Versions 1 to 3 have no tail: it reads as 0, which means none.
// Versions 1 to 4 have no relations, and no plans with the seed components.
//
// A string is its length as a varint and its bytes. The CRC covers everything before it. The blob
// is derived data: if it cannot be read, the decoder counts as uncalibrated.
const (
	blobMagic   = "fcal"
	blobVersion = 5
)

// A Set holds the calibrations of one decoder: that of the served generation, and that of one other
// generation, such as the one that a rebuild is about to publish.
type Set []Calibration

var (
	seeds   = []flashlight.Seed{flashlight.SeedOnes, flashlight.SeedSource, flashlight.SeedBoth, flashlight.SeedLearned, flashlight.SeedLearnedOnes, flashlight.SeedComponents}
	anchors = []flashlight.AnchorsFrom{flashlight.AnchorsRound, flashlight.AnchorsAll, flashlight.AnchorsBoth, flashlight.AnchorsRoundOnes}
)

// Marshal returns the blob of the set. The probes of every plan must be a share of the rows, as
// those of a run are.
func (s Set) Marshal() []byte {
	var w format.Writer
	w.Bytes([]byte(blobMagic))
	w.Uint32(blobVersion)
	w.Uvarint(uint64(len(s)))
	for i := range s {
		s[i].encode(&w)
	}
	w.CRC(0)
	return w.Data()
}

func (c *Calibration) encode(w *format.Writer) {
	w.Uvarint(c.Generation)
	w.Uvarint(c.BuildLSN)
	w.Uint64(c.Decoder)
	w.String(c.SourcesFrom)
	w.Uvarint(uint64(c.Rows))
	w.Uvarint(uint64(c.Sources))
	w.Float64(c.ExactSeconds)
	w.Uvarint(uint64(len(c.Frontiers)))
	for _, f := range c.Frontiers {
		w.Uvarint(uint64(f.K))
		w.Uvarint(uint64(len(f.Points)))
		for i := range f.Points {
			f.Points[i].encode(w)
		}
	}
	if c.Seeds.Len() == 0 {
		w.Uvarint(0)
		return
	}
	w.Uvarint(uint64(c.Seeds.Dim()))
	c.Seeds.Encode(w)
}

func (p *Point) encode(w *format.Writer) {
	w.Uint8(position(seeds, p.Plan.Seed))
	w.Uint8(position(anchors, p.Plan.AnchorsFrom))
	for _, n := range []int{p.Plan.Anchors, p.Plan.Rounds, p.Plan.PerRound, p.Plan.Patience, p.Plan.Growth} {
		w.Uvarint(uint64(n))
	}
	for _, v := range []float64{p.Plan.Tail, p.Plan.Probes.Share, p.Mean, p.P5, p.Worst, p.Bound, p.RowsScored, p.CodesScanned, p.Seconds} {
		w.Float64(v)
	}
	w.String(p.Relation)
	w.Float64(p.RelationMean)
}

func position[T comparable](of []T, v T) uint8 {
	for i := range of {
		if of[i] == v {
			return uint8(i)
		}
	}
	panic("calibrate: a plan that no run makes")
}

// Unmarshal decodes a blob. A damaged one gives an error that matches format.ErrCorrupt, and one of
// a newer version an error that matches format.ErrVersion. It keeps no reference to the blob.
func Unmarshal(blob []byte) (Set, error) {
	const headerBytes, crcBytes = len(blobMagic) + 4, 4
	if len(blob) < headerBytes+crcBytes || string(blob[:len(blobMagic)]) != blobMagic {
		return nil, format.Corrupt("", "calibration", 0, "no calibration: %d bytes that do not begin with %q", len(blob), blobMagic)
	}
	body := blob[:len(blob)-crcBytes]
	r := format.NewReader("", "calibration", int64(len(blobMagic)), body[len(blobMagic):])
	version := r.Uint32()
	if err := format.CheckVersion("calibration", version, blobVersion); err != nil {
		return nil, err
	}
	stored := format.NewReader("", "calibration", int64(len(body)), blob[len(body):]).Uint32()
	if sum := format.CRC(body); sum != stored {
		return nil, format.Corrupt("", "calibration", int64(len(body)), "checksum is %08x, stored is %08x", sum, stored)
	}
	const least = 22 // bytes of a calibration without frontiers
	s := make(Set, r.Count(least))
	for i := range s {
		s[i].decode(r, version)
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	return s, nil
}

func (c *Calibration) decode(r *format.Reader, version uint32) {
	c.Generation, c.BuildLSN, c.Decoder = r.Uvarint(), r.Uvarint(), r.Uint64()
	c.SourcesFrom = r.String()
	c.Rows, c.Sources = count(r), count(r)
	c.ExactSeconds = amountOf(r)
	c.Frontiers = make([]Frontier, r.Count(2))
	for i := range c.Frontiers {
		f := &c.Frontiers[i]
		f.K = count(r)
		if f.K < 1 && r.Err() == nil {
			r.Fail("a frontier of k %d", f.K)
		}
		if i > 0 && f.K <= c.Frontiers[i-1].K {
			r.Fail("frontier of k %d after that of %d", f.K, c.Frontiers[i-1].K)
		}
		const least = 6 + 8*8 // bytes of a point of version 1
		f.Points = make([]Point, r.Count(least))
		for j := range f.Points {
			f.Points[j].decode(r, version)
		}
	}
	if version > 2 {
		c.decodeSeeds(r)
	}
}

func (c *Calibration) decodeSeeds(r *format.Reader) {
	dim := count(r)
	switch {
	case r.Err() != nil || dim == 0:
		return
	case dim > r.Len(): // before memory is allocated for them
		r.Fail("seeds of dim %d in %d bytes", dim, r.Len())
		return
	}
	if c.Seeds = flashlight.DecodeSeeds(r, dim); c.Seeds == nil && r.Err() == nil {
		r.Fail("seeds of dim %d without prototypes", dim)
	}
}

func (p *Point) decode(r *format.Reader, version uint32) {
	seed, from := int(r.Uint8()), int(r.Uint8())
	if seed >= len(seeds) || from >= len(anchors) {
		r.Fail("seed %d, anchors from %d", seed, from)
		return
	}
	p.Plan = flashlight.Plan{Method: flashlight.MethodFlashlight, Seed: seeds[seed], AnchorsFrom: anchors[from]}
	for _, n := range []*int{&p.Plan.Anchors, &p.Plan.Rounds, &p.Plan.PerRound, &p.Plan.Patience} {
		*n = count(r)
	}
	if version > 1 {
		p.Plan.Growth = count(r)
	}
	if version > 3 {
		p.Plan.Tail = amountOf(r)
	}
	p.Plan.Probes = index.Probes{Share: amountOf(r)}
	for _, v := range []*float64{&p.Mean, &p.P5, &p.Worst, &p.Bound, &p.RowsScored, &p.CodesScanned, &p.Seconds} {
		*v = amountOf(r)
	}
	if version > 4 {
		p.Relation, p.RelationMean = r.String(), amountOf(r)
	}
	if err := p.Plan.Validate(); err != nil && r.Err() == nil {
		r.Fail("%w", err)
	}
}

// count reads a count.
func count(r *format.Reader) int {
	v := r.Uvarint()
	if v > math.MaxInt32 {
		r.Fail("%d of something that there are at most %d of", v, math.MaxInt32)
		return 0
	}
	return int(v)
}

// amountOf reads a number that is finite and not negative.
func amountOf(r *format.Reader) float64 {
	v := r.Float64()
	if !(v >= 0 && v <= math.MaxFloat64) {
		r.Fail("%v, want a number from 0 on", v)
		return 0
	}
	return v
}
