package ivf

import "sort"

// ListOf returns the list that holds the row at a position; see IDs.
func (ix *Index) ListOf(position int) int {
	return sort.Search(ix.header.lists, func(l int) bool { return int(ix.begin[l+1]) > position })
}

// Visited reports whether the search has visited a list since Reset.
func (s *Search) Visited(list int) bool { return s.visited.has(list) }

// ListSizes returns the number of rows of every list.
func (ix *Index) ListSizes() []int {
	sizes := make([]int, ix.header.lists)
	for l := range sizes {
		sizes[l] = int(ix.begin[l+1] - ix.begin[l])
	}
	return sizes
}
