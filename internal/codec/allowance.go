package codec

import "fmt"

// What an input may make of its size on disk: a base, and so many times that size. See the package
// comment.
const (
	// holdBase and holdRatio bound the bytes and values that are held at once. 100 is beyond what
	// zstd makes of trained weights or embeddings and far below what it makes of zeros.
	holdBase  = 16 << 20
	holdRatio = 100

	// partsBase and partsRatio bound what tells where the tensors are: the directory of an archive,
	// the values of a pickle, names, shapes. In a sound file they are small beside the tensors
	// themselves.
	partsBase  = 16 << 20
	partsRatio = 8

	// passBase and passRatio bound what a decompressor gives out in one pass. Nothing of that is
	// held, but it takes time, and room in a database. Sparse features, one float32 in a few
	// hundred not zero, stay below.
	passBase  = 256 << 20
	passRatio = 256

	// viewCost is what a tensor and its place take in memory, without its name; rankCost what a
	// dimension adds; stepCost a step of a walk.
	viewCost = 256
	rankCost = 24
	stepCost = 64
)

// bound counts down what an input may still claim of something.
type bound struct {
	limit, left int64
	refusal     string // a format for the limit
}

func (b *bound) spend(n int64) error {
	if n > b.left {
		return fmt.Errorf(b.refusal, b.limit)
	}
	b.left -= n
	return nil
}

// allowance is what one input may claim. Its blobs share it.
type allowance struct {
	bound       // of what is held
	parts bound // of what describes tensors
	pass  int64 // of what one pass of a decompressor gives out
}

func allow(inputSize int64) *allowance {
	of := func(base, ratio int64, refusal string) bound {
		limit := base + ratio*inputSize
		return bound{limit, limit, refusal}
	}
	return &allowance{
		bound: of(holdBase, holdRatio, "expands to more than %d bytes (16 MiB + 100 x the file's size): refused as a decompression bomb; decompress the file first if it is sound"),
		parts: of(partsBase, partsRatio, "names, shapes and nested values take more than %d bytes (16 MiB + 8 x the file's size): refused; save the tensors alone, as .safetensors"),
		pass:  PassLimit(inputSize),
	}
}

// PassLimit is how many bytes a file of a size may be decompressed to in one pass.
func PassLimit(size int64) int64 { return passBase + passRatio*size }

// passes checks what a pass gives out, or is declared to.
func (a *allowance) passes(n int64) error {
	if n > a.pass {
		return fmt.Errorf("expands to more than %d bytes (256 MiB + 256 x the file's size): refused as a decompression bomb; decompress the file first if it is sound", a.pass)
	}
	return nil
}
