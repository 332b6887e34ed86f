package ivf

import (
	"math"
	"runtime"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/flashdb/flashdb/index/pq"
	"github.com/flashdb/flashdb/internal/format"
)

// Verify verifies the checksums that Open does not: those of the codes, of the rows, of the keys,
// and of sections of kinds unknown to this program. It reads these sections in full.
func (ix *Index) Verify() error {
	return ix.eachFile((*Index).verify)
}

// eachFile calls fn for each file, guarded, until it returns an error.
func (ix *Index) eachFile(fn func(*Index) error) error {
	for i := range ix.parts {
		of := ix.parts[i].of
		if err := of.guardFile(func() error { return fn(of) }); err != nil {
			return err
		}
	}
	return nil
}

func (ix *Index) verify() error {
	for i := range ix.sections {
		if s := &ix.sections[i]; !s.kind.verifiedAtLoad() {
			if err := ix.checkCRC(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// verifyAll verifies all checksums of a file.
func (ix *Index) verifyAll() error {
	for i := range ix.sections {
		if err := ix.checkCRC(&ix.sections[i]); err != nil {
			return err
		}
	}
	return nil
}

// Check verifies everything, which needs a read of the whole file: the checksums of all sections,
// the gaps between them, that no id occurs twice, that numbers are finite, the padding of the
// codes, the table of keys, and a sample of the codes against the rows. It returns the first fault.
func (ix *Index) Check() error { return ix.eachFile((*Index).check) }

func (ix *Index) check() error {
	end := int64(headerBytes + entryBytes*len(ix.sections))
	for i := range ix.sections {
		s := &ix.sections[i]
		if err := ix.checkGap(end, s.offset); err != nil {
			return err
		}
		if err := ix.checkCRC(s); err != nil {
			return err
		}
		end = s.end()
	}
	if err := ix.checkGap(end, ix.header.length); err != nil {
		return err
	}
	found, err := ix.find()
	if err != nil {
		return err
	}
	ids, err := ix.checkIDs(found[kindIDs])
	if err != nil {
		return err
	}
	if err := ix.checkNumbers(found); err != nil {
		return err
	}
	if err := ix.checkPadding(found[kindCodes]); err != nil {
		return err
	}
	if err := ix.checkKeys(found[kindKeys], ids); err != nil {
		return err
	}
	return ix.checkCodes(found[kindCodes])
}

// checkCRC verifies the checksum of a section.
func (ix *Index) checkCRC(s *section) error {
	ahead := ix.readAhead(s)
	got, left := uint32(0), ix.bytes(s)
	for len(left) > 0 {
		ahead.reach(s.length - int64(len(left)))
		n := min(len(left), aheadBytes)
		got, left = format.CRCUpdate(got, left[:n]), left[n:]
		runtime.Gosched() // for queries beside a build
	}
	if got != s.crc {
		return ix.corrupt(s, 0, "checksum is %08x, want %08x", got, s.crc)
	}
	return nil
}

func (ix *Index) checkGap(from, to int64) error {
	for at := from; at < to; at++ {
		if ix.data[at] != 0 {
			return format.Corrupt(ix.name, "gap", at, "byte %02x between sections, want zero", ix.data[at])
		}
	}
	return nil
}

// checkIDs verifies that no two lists hold the same id, and returns all ids. Load has verified that
// ids ascend inside each list.
func (ix *Index) checkIDs(s *section) (*roaring.Bitmap, error) {
	seen := roaring.New()
	for l := range ix.header.lists {
		for p := ix.begin[l]; p < ix.begin[l+1]; p++ {
			if !seen.CheckedAdd(ix.ids[p]) {
				return nil, ix.corrupt(s, 4*int64(p), "id %d is in list %d and in an earlier one", ix.ids[p], l)
			}
		}
	}
	return seen, nil
}

// checkNumbers verifies that all stored numbers are finite and no variance is negative.
func (ix *Index) checkNumbers(found [kindEnd]*section) error {
	for _, part := range []struct {
		kind   kind
		values []float32
		least  float32
	}{
		{kindCentroids, ix.centroids, -math.MaxFloat32},
		{kindVariances, ix.variances, 0},
		{kindRows, ix.rows, -math.MaxFloat32},
	} {
		for i, x := range part.values {
			if !(x >= part.least && x <= math.MaxFloat32) {
				return ix.corrupt(found[part.kind], 4*int64(i), "value %v: want a finite number of at least %v", x, part.least)
			}
		}
	}
	return nil
}

// checkPadding verifies that the padding codes in the last block of each list are zero.
func (ix *Index) checkPadding(s *section) error {
	shape := ix.header.shape()
	if shape.Bits != 4 {
		return nil
	}
	size := shape.CodeBytes()
	for l := range ix.header.lists {
		used := int(ix.begin[l+1]-ix.begin[l]-1)%pq.BlockCodes + 1 // codes in the last block
		at := ix.codeBegin[l+1] - int64(size*pq.BlockCodes)
		for j := range size {
			for i := used; i < pq.BlockCodes; i++ {
				if b := ix.codes[at+int64(j*pq.BlockCodes+i)]; b != 0 {
					return ix.corrupt(s, at+int64(j*pq.BlockCodes+i), "byte %02x after the last code of list %d, want zero", b, l)
				}
			}
		}
	}
	return nil
}

const (
	// sampledCodes is about how many codes Check computes again.
	sampledCodes = 4096
	// One in codeTies of their bytes may differ. If two points of a codebook are equally near,
	// rounding decides, and it differs between processors.
	codeTies = 64
)

// checkCodes encodes the first rows of lists all over the file again and compares the codes. A
// checksum only shows that the file is as it was written, not that the codes are right.
func (ix *Index) checkCodes(s *section) error {
	if ix.rows == nil {
		return nil
	}
	shape := ix.header.shape()
	size, d := shape.CodeBytes(), shape.Dim
	residual := make([]float32, d)
	plain := make([]byte, size*pq.BlockCodes)
	packed := make([]byte, size*pq.BlockCodes)
	step := max(1, ix.header.rows/sampledCodes)
	compared, differ := 0, 0
	for l, done := 0, 0; l < ix.header.lists; l++ {
		begin := int(ix.begin[l])
		if begin < done*step {
			continue
		}
		n := min(int(ix.begin[l+1])-begin, pq.BlockCodes)
		done += n
		for i := range n {
			copy(residual, ix.rows[(begin+i)*d:(begin+i+1)*d])
			residualOf(residual, ix.centroids[l*d:(l+1)*d], ix.spread[l])
			ix.quantizer.Encode(plain[i*size:(i+1)*size], residual)
		}
		want := plain[:n*size]
		if shape.Bits == 4 {
			clear(packed)
			pq.Pack(packed, want, size)
			want = packed
		}
		compared += n * size
		for i, b := range ix.codes[ix.codeBegin[l]:][:len(want)] {
			if b != want[i] {
				differ++
			}
		}
	}
	if differ*codeTies > compared {
		return ix.corrupt(s, 0, "%d of %d bytes of codes are not those of their rows", differ, compared)
	}
	return nil
}
