package pq

import (
	"fmt"
	"math"

	"github.com/flashdb/flashdb/internal/simd"
)

// Encode writes the code of row to dst, CodeBytes long.
func (q *Quantizer) Encode(dst []byte, row []float32) {
	if len(row) != q.shape.Dim || len(dst) != q.shape.CodeBytes() {
		panic(fmt.Sprintf("pq: Encode: %d values into %d bytes, want %d into %d", len(row), len(dst), q.shape.Dim, q.shape.CodeBytes()))
	}
	if q.shape.Bits == 8 {
		for s := range dst {
			dst[s] = q.nearest(row, s)
		}
		return
	}
	subs := q.shape.subs()
	for j := range dst {
		dst[j] = q.nearest(row, 2*j)
		if 2*j+1 < subs {
			dst[j] |= q.nearest(row, 2*j+1) << 4
		}
	}
}

// decode writes the row that a code stands for to dst.
func (q *Quantizer) decode(dst []float32, code []byte) {
	for s := range q.shape.subs() {
		c := int(code[s*q.shape.Bits/8])
		if q.shape.Bits == 4 {
			c = c >> (4 * (s % 2)) & 15
		}
		points, _ := q.book(s)
		copy(q.sub(dst, s), points[c*q.shape.SubDim:])
	}
}

// nearest returns the number of the point nearest to sub-vector s of row, the lowest of equally
// near ones: the highest x.p - |p|^2/2.
func (q *Quantizer) nearest(row []float32, s int) byte {
	points, half := q.book(s)
	x := q.sub(row, s)
	if len(x) == 2 && q.shape.SubDim == 2 {
		return nearest2(x[0], x[1], points, half)
	}
	best, at := float32(math.Inf(-1)), 0
	for i, h := range half {
		score := -h
		for j, p := range points[i*q.shape.SubDim:][:len(x)] {
			score += x[j] * p
		}
		if score > best {
			best, at = score, i
		}
	}
	return byte(at)
}

// nearest2 is nearest for the usual sub-vectors of two dimensions.
func nearest2(x, y float32, points, half []float32) byte {
	best, at := float32(math.Inf(-1)), 0
	points = points[:2*len(half)]
	for i, h := range half {
		if score := x*points[2*i] + y*points[2*i+1] - h; score > best {
			best, at = score, i
		}
	}
	return byte(at)
}

// Pack lays out row-major codes of size bytes each (CodeBytes of 4-bit codes) in blocks of 32 for
// simd.Scan4: byte j*32+i of a block is byte j of its code i. The last block is padded with zeros.
// dst is ListBytes long.
func Pack(dst, codes []byte, size int) {
	for len(codes) > 0 {
		n := min(BlockCodes, len(codes)/size)
		block := dst[:BlockCodes*size]
		for j := range size {
			line := block[j*BlockCodes : (j+1)*BlockCodes]
			for i := range n {
				line[i] = codes[i*size+j]
			}
			clear(line[n:])
		}
		dst, codes = dst[len(block):], codes[n*size:]
	}
}

// Table writes the lookup table of a query for 4-bit codes, TableLen bytes, and returns what turns
// the sum of a code's entries into the estimated inner product of query and row:
//
//	query . row  ~=  scale*sum + bias
//
// Every table of 16 is shifted so that its least entry is 0 (the shifts add up to bias), and all
// are divided by one scale. The groups of eight tables that simd.Scan4 adds up as bytes
// (simd.Scan4Group) share 0..255, so that a table spans some 32 steps, more if its group is of
// unequal ones. An entry is off by at most half a step of scale: beside the distance of a row from
// what its code stands for, an error too small to cost recall.
func (q *Quantizer) Table(lut []byte, query []float32) (scale, bias float32) {
	if q.shape.Bits != 4 || len(query) != q.shape.Dim {
		panic(fmt.Sprintf("pq: Table of a %d-dim query for %d-dim rows of %d bits", len(query), q.shape.Dim, q.shape.Bits))
	}
	const points = 16
	var values [maxSubs * points]float32
	var least, spans [maxSubs]float32 // of a table; of a group
	var widest, sum float32
	subs := q.shape.subs()
	for s := range subs {
		table := values[s*points : (s+1)*points]
		q.products(table, query, s)
		lo, hi := table[0], table[0]
		for _, v := range table {
			lo, hi = min(lo, v), max(hi, v)
		}
		span := &spans[simd.Scan4Group(s)]
		*span += hi - lo
		least[s], widest, sum = lo, max(widest, *span), sum+lo
	}
	lut = lut[:q.shape.TableLen()]
	clear(lut[subs*points:])
	const rounding = 4 // half a step, eight times
	scale = widest / (math.MaxUint8 - rounding)
	if !(scale > 0) { // the query is zero, or as good as
		clear(lut)
		return 0, sum
	}
	for s := range subs {
		for i, v := range values[s*points : (s+1)*points] {
			lut[s*points+i] = byte(min(math.MaxUint8, (v-least[s])/scale+0.5))
		}
	}
	return scale, sum
}

// FloatTable writes the lookup table of a query for 8-bit codes, TableLen values: the sum of a
// code's entries is the estimated inner product of query and row.
func (q *Quantizer) FloatTable(lut, query []float32) {
	if q.shape.Bits != 8 || len(query) != q.shape.Dim {
		panic(fmt.Sprintf("pq: FloatTable of a %d-dim query for %d-dim rows of %d bits", len(query), q.shape.Dim, q.shape.Bits))
	}
	points := q.shape.points()
	for s := range q.shape.subs() {
		q.products(lut[s*points:(s+1)*points], query, s)
	}
}

// products sets dst to the inner products of sub-vector s of the query with the points of its
// codebook.
func (q *Quantizer) products(dst, query []float32, s int) {
	points, _ := q.book(s)
	x := q.sub(query, s)
	for i := range dst {
		var sum float32
		for j, p := range points[i*q.shape.SubDim:][:len(x)] {
			sum += x[j] * p
		}
		dst[i] = sum
	}
}
