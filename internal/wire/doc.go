// Package wire writes and reads values of Go as JSON that loses nothing: for package control, and
// for small values that a database stores as text.
//
// The comment of package control says how keys that are not UTF-8, infinite floats and vectors
// travel. The functions keep no state.
package wire
