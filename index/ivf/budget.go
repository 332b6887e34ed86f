package ivf

import (
	"cmp"
	"fmt"
	"math"
)

// A BudgetError is returned by Build if no sample and batches fit BuildOptions.MemoryBytes.
type BudgetError struct {
	Budget int64 // MemoryBytes
	Least  int64 // the least that would do
}

// Error implements error.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the build holds %s at least, and the budget for memory is %s", bytesText(e.Least), bytesText(e.Budget))
}

// bytesText rounds a number of bytes up, so that what a message says is enough.
func bytesText(n int64) string {
	if n < 10e6 {
		return fmt.Sprintf("%d kB", (n+1e3-1)/1e3)
	}
	return fmt.Sprintf("%d MB", (n+1e6-1)/1e6)
}

const (
	// leastPerList is how many rows a list is trained on at least, where memory is short.
	leastPerList = 8
	// leastBuffer is the least size of a batch of rows.
	leastBuffer = 256 << 10
)

// A budget is how a build divides its memory.
type budget struct {
	sampleRows int   // 0: as many as there should be
	batch      int64 // bytes of rows that are read at a time; 0: batchBytes
	encode     int64 // bytes of rows that a worker encodes at a time; 0: encodeBytes
}

// fit divides BuildOptions.MemoryBytes. Batches are made smaller first, down to leastBuffer,
// which costs only time, and then the sample. The sample does not depend on the workers. A segment
// is never refused: without it each query would scan its rows.
func (o *BuildOptions) fit() (budget, error) {
	if o.MemoryBytes == 0 || o.Rows == 0 {
		return budget{}, nil
	}
	var wanted, least float64 // rows of the sample: a segment trains nothing
	if o.Like == nil {
		wanted = o.sampleShare(o.Rows) * float64(o.Rows)
		least = min(wanted, max(leastPerList*o.listCount(o.Rows), sampleLeast))
	}
	b := budget{batch: batchBytes, encode: encodeBytes}
	for o.writeBytes(b.encode) > o.MemoryBytes && b.encode > leastBuffer {
		b.encode /= 2
	}
	for max(o.trainBytes(least, b.batch), o.assignBytes(b.batch)) > o.MemoryBytes && b.batch > leastBuffer {
		b.batch /= 2
	}
	spare := o.MemoryBytes - o.trainBytes(least, b.batch)
	if held := max(o.writeBytes(b.encode), o.assignBytes(b.batch), o.MemoryBytes-spare); held > o.MemoryBytes && o.Like == nil {
		return b, &BudgetError{o.MemoryBytes, held}
	}
	if most := o.trainBytes(wanted, b.batch); most > o.MemoryBytes && o.Like == nil {
		// What is held grows at most in proportion.
		b.sampleRows = max(1, int(least+(wanted-least)*float64(spare)/float64(most+spare-o.MemoryBytes)))
	}
	return b, nil
}

// trainBytes is what is held while the lists are trained on so many rows: the sample, the part of
// it that the codebooks are trained on, and what k-means adds. For a segment it is the centroids.
func (o *BuildOptions) trainBytes(sample float64, batch int64) int64 {
	row, lists := float64(4*o.Dim), o.listCount(o.Rows)
	groups := math.Sqrt(lists)
	const (
		perRow = 4 + 16 // its id; its lists, and its place among their rows
		splits = 16     // clusters that are split at a time: by as many workers, or by fewer if some are large
	)
	coarse := max(min(sample, 256*groups), splits*sample/groups) * row
	return int64(sample*(row+perRow)+min(sample, 2*sampleLeast)*row+4*lists*row+coarse) + batch
}

// assignBytes is what is held while rows are assigned: their ids and lists, the moments of the
// lists, centroids, and the rows for the codebooks.
func (o *BuildOptions) assignBytes(batch int64) int64 {
	row, lists := float64(4*o.Dim), o.listCount(o.Rows)
	held := 8*float64(o.Rows) + 9*lists*row
	if o.Like == nil {
		held += 2 * sampleLeast * row
	}
	return int64(held) + batch
}

// writeBytes is what is held while the file is written: ids and positions, and the ends of keys,
// centroids and variances, and what the workers encode.
func (o *BuildOptions) writeBytes(encode int64) int64 {
	row, lists := float64(4*o.Dim), o.listCount(o.Rows)
	return int64(16*float64(o.Rows)+3*lists*row) + int64(o.Workers)*5*encode/2
}

// batchSize returns how many rows are read at a time.
func (b *builder) batchSize() int {
	return max(1, min(batchRows, int(cmp.Or(b.budget.batch, batchBytes))/(4*b.opt.Dim)))
}

// encodeSize returns how many rows a worker encodes at a time.
func (b *builder) encodeSize() int {
	return min(encodeRows, int(cmp.Or(b.budget.encode, encodeBytes))/(4*b.opt.Dim))
}

// newSample returns an empty sample, and the hash up to which rows are kept at first. If the number
// of rows is known, the sample is as large as it will be.
func (b *builder) newSample() (s *sample, limit uint64) {
	s = &sample{}
	if b.opt.Rows == 0 {
		return s, math.MaxUint64
	}
	share := b.opt.sampleShare(b.opt.Rows)
	n := share * float64(b.opt.Rows)
	n = min(float64(b.opt.Rows), n+6*math.Sqrt(n)) // its size is random
	s.ids, s.rows = make([]uint32, 0, int(n)), make([]float32, 0, int(n)*b.opt.Dim)
	return s, lowest(share)
}
