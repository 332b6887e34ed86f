// Package roofline measures what a core can do at best: fused multiply-adds on registers, loads
// from memory. The benchmarks of package simd print it beside their own figures; nothing else uses
// it.
package roofline
