package ivf

import (
	"context"

	"github.com/flashdb/flashdb/internal/kmeans"
)

// A segment is a file whose rows are newer than those of a generation. Its rows are assigned to the
// centroids of the generation, or to some of them, so nothing is trained. The centroid of each list
// becomes the mean of its own rows, and its spread is theirs, as in any file. So rows that lie
// elsewhere in space are coded about as well as the others. But there are fewer lists where they
// lie than a rebuild would train.

// rowsPerSegmentList is the least mean number of rows for each centroid that a segment takes. With
// 16, the rows of a segment are in wider lists than a rebuild would put them into: on a graph of
// 64,000 nodes, a fifth of them in a segment, 5% of the rows visited found .836 of the top 100 in
// place of .878, and with 4 or less .863.
const rowsPerSegmentList = 4

// takeCentroids counts the rows, unless opt.Rows says it, and takes as many centroids of opt.Like
// as there should be lists.
func (b *builder) takeCentroids(ctx context.Context) error {
	b.total = b.opt.Rows
	if b.total == 0 {
		err := b.batches(ctx, func(ids []uint32, _ []float32) error {
			b.total += int64(len(ids))
			return nil
		})
		if err != nil {
			return err
		}
	}
	base, d := b.opt.Like.parts[0].of, b.opt.Dim
	lists := base.header.lists
	wanted := int(b.opt.listCount(b.total))
	centroids := make([]float32, 0, wanted*d)
	for i := range wanted { // lists that lie close together follow each other
		l := uint32(int64(i) * int64(lists) / int64(wanted))
		centroids = append(centroids, base.centroid(l)...)
	}
	b.partition = newPartition(centroids, d, wanted)
	return b.partition.take(ctx, b.opt.Workers)
}

// takeCodebooks takes those of opt.Like.
func (b *builder) takeCodebooks(context.Context) error {
	b.quantizer = b.opt.Like.quantizer
	return nil
}

// take makes each row of the sample the centroid of a list.
func (p *partition) take(ctx context.Context, workers int) (err error) {
	p.lists = 0
	for i := range p.strata {
		s := &p.strata[i]
		s.begin, s.lists = p.lists, max(1, len(s.rows)/p.dim)
		p.lists += s.lists
		if s.lists > 1 {
			if s.assigner, err = kmeans.NewAssigner(ctx, s.rows, p.dim, workers); err != nil {
				return err
			}
		}
		s.rows = nil
	}
	return nil
}
