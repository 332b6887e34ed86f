// Package simd holds the numeric kernels of flashdb: inner products, the matrix
// product of decoder layers, and the scans of quantized codes. The doc comment
// of each kernel is the plain Go loop it equals, up to the order in which float32
// terms are summed.
//
// Sums are never one running float32 sum: they are split over partial sums, so
// that the rounding error of a long vector stays near that of a short one. Equal
// inputs give equal bits wherever they lie in memory or in a batch, as long as
// the kernel class (see Features) is the same.
//
// Shapes are checked once, at the exported functions, by slicing; a wrong one is
// a programmer error and panics. All functions are safe for concurrent use on
// memory nobody writes to meanwhile.
package simd
