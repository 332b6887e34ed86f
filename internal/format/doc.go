// Package format holds what every binary format of flashdb has in common: little-endian integers,
// CRC32C checksums, a cursor that reads untrusted bytes, and the errors that say where a file is
// broken.
//
// A parser reads straight down with a [Reader] and asks for its error once, at the end or before it
// acts on what it read: after the first failure every read yields zero. What the cursor returns is
// at most as large as what is left of its input, so a hostile length cannot make a parser allocate
// more than the file it came in.
//
// The package holds no state. A Reader and a Writer belong to one goroutine at a time; everything
// else is safe for concurrent use.
package format
