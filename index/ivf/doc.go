// Package ivf is the index of a collection: one immutable file per generation, an inverted file
// with product-quantized residuals, searched by inner product.
//
// # Structure
//
// The rows are clustered into lists (internal/kmeans). A list stores the ids of its rows and, for
// each, the code of its residual, row minus centroid, divided by the spread of the list (the
// standard deviation of its residuals) and quantized by index/pq. As
//
//	q.row = q.centroid + spread * (q.residual/spread)
//
// one lookup table per query serves all lists. Rows whose norms differ by orders of magnitude are
// in separate lists (stratum.go). Queries are scaled so that no estimate overflows (scale.go). A
// row's position is its number in list order: lists one after the other, ids ascending inside each.
//
// # Probing
//
// The best of the n rows of a list scores about as high as the largest of n Gaussians with the
// list's mean and deviation along the query, so lists are visited in the order of
//
//	priority(l) = q.c_l + sqrt(2 ln n_l) * s_l * sqrt(sum_d q_d^2 p_d)
//
// where c_l is the centroid, s_l the spread of the list and p_d the variance of the residuals in
// dimension d, divided by its mean over all dimensions. This assumes that lists have one shape and
// differ in size. The last root is one number per query. If there are many lists and a query visits
// a part of them, it chooses them by centroids of 8 bits (rounded.go). If it visits few of them, it
// looks only into the groups of lists that are likely to hold one (groups.go). Once lists are
// chosen, everything is computed with their exact centroids.
//
// The set of visited lists belongs to a Search and only grows. Each further query vector adds its
// best unvisited lists. It scans every list visited so far, best first, except those whose rows are
// unlikely to reach the candidates found by then.
//
// # Ranking
//
// The scan estimates inner products from codes and keeps a few times as many rows as are asked for,
// which are then ranked by their true inner products. The error of an estimate grows with the
// deviation of its list along the query. So every estimate is raised by 1.5 standard deviations of
// its error before rows compete to be kept.
//
// # Segments
//
// Rows that are newer than a generation may be in segments: further files of this format, built
// with its codebooks and with centroids taken from it (segment.go). Join makes one index of them
// (parts.go): lists and positions are numbered through, and a row that a later file has, or whose
// node was deleted, is hidden.
//
// # Use
//
// Build writes a file, and Open maps it. Load opens bytes from anywhere. An Index is immutable and
// safe for concurrent use. It starts with one reference. The last Release unmaps it, and nothing
// that it returned may be used after that. A Search belongs to one goroutine at a time and is
// reused. A large search starts goroutines of its own (workers.go).
//
// # File format, version 1
//
// All numbers are little-endian. Sections begin at multiples of 64 bytes, in the order of the
// table; the gaps are zero.
//
//	+--------+-------+-----+-----------+-----+-----------+-----+--
//	| header | table | gap | centroids | gap | variances | gap | ...
//	+--------+-------+-----+-----------+-----+-----------+-----+--
//
//	header, 96 bytes
//	 0  magic "flashivf"          8 bytes
//	 8  version                   uint32, 1
//	12  sections in the table     uint32
//	16  dim                       uint32
//	20  lists                     uint32
//	24  rows                      uint64, below 2^32
//	32  bits a sub-vector         uint16, 4 or 8
//	34  dimensions a sub-vector   uint16
//	36  collection UID            uint32
//	40  build LSN                 uint64, what the index reflects of the log
//	48  seed                      uint64
//	56  settings                  uint64, a hash of the build options that shape the file
//	64  file length               uint64
//	72  zero                      20 bytes
//	92  CRC32C                    uint32, of the 92 bytes before and of the table
//
//	table, 32 bytes per section
//	 0  kind      uint32
//	 4  flags     uint32, bit 0: required, a reader that does not know the kind must refuse the file
//	 8  offset    uint64, from the start of the file
//	16  length    uint64
//	24  CRC32C    uint32, of the section without the gap
//	28  zero      uint32
//
//	kind           required  content
//	1  centroids   yes       float32, lists x dim
//	2  variances   yes       float32, lists x dim; of list l times 4^e when exponent l is e
//	3  lists       yes       uint32, lists+1: list l holds the positions lists[l] to lists[l+1]; none is empty
//	4  ids         yes       uint32, by position
//	5  codebooks   yes       see index/pq
//	6  codes       yes       4 bits: list after list in blocks of 32 codes, the last block of each list zero-padded;
//	                         8 bits: code after code, by position
//	7  rows        no        float32, rows x dim, by position
//	8              no        unused; older programs skip it
//	9  exponents   if there  int8, one per list: 0 where a float32 holds the variances of the list; left out when all are
//	10 keys        no        see keys.go; behind all others
//	11 groups      no        uint32, groups+1: group g holds the lists groups[g] to groups[g+1]; left out of few lists, see
//	                         groups.go, and where rows are in several strata, or shifted or scaled in one, see stratum.go
//
// Open verifies all checksums but those of the codes, rows and keys, which are most of the file.
// Verify verifies these, and Check everything. Any code is a valid code, so damaged codes lower
// recall but cannot crash a search.
//
// Bytes that were verified can still change. If a file is truncated under a running process, reads
// of the mapping fault, and Guard turns the fault into an error. A page that is read again from a
// failing disk may hold other bytes. Verify and Check notice both.
package ivf
