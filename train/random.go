package train

// Streams of random numbers: each purpose has its own, so that one more draw for one of them does not shift the others.
const (
	streamSplit = iota + 1
)
