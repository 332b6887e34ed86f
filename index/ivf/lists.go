package ivf

import (
	"sort"

	"github.com/flashdb/flashdb/index"
)

// Centroids returns the centroid of every list, row-major, lists x dim. It must not be changed.
func (ix *Index) Centroids() []float32 { return ix.centroids }

// Grouped reports whether lists that lie close together follow each other.
func (ix *Index) Grouped() bool { return ix.groups.len() > 0 }

// List appends the valid rows of list l to dst, for Gather: id and position, without a score.
func (ix *Index) List(l int, dst []index.Candidate) []index.Candidate {
	p := ix.partOf(l)
	_, ids := p.list(l)
	for i, id := range ids {
		if !p.hides(id) {
			dst = append(dst, index.Candidate{ID: id, Ref: ix.begin[l] + uint32(i)})
		}
	}
	return dst
}

// ListOf returns the list that holds the row at a position; see IDs.
func (ix *Index) ListOf(position int) int {
	return sort.Search(ix.header.lists, func(l int) bool { return int(ix.begin[l+1]) > position })
}

// ListSizes returns the number of rows of every list.
func (ix *Index) ListSizes() []int {
	sizes := make([]int, ix.header.lists)
	for l := range sizes {
		sizes[l] = int(ix.begin[l+1] - ix.begin[l])
	}
	return sizes
}
