package codec

import (
	"bytes"
	"errors"
	"fmt"
)

// Tensor is one array: row-major, contiguous, len(Data) = the product of Shape. A scalar has an
// empty Shape and one value.
type Tensor struct {
	Shape []int
	Data  []float32
}

// ReadTensors reads every tensor of a .safetensors, .npz, .npy or zip .pt/.pth file, or of a .zst
// or .gz of one. The tensor of a .npy has the name "". Nested dicts of a .pt give names joined with
// dots; what is not a tensor there is skipped. Each Data is the caller's own, even where the file
// shares storage.
func ReadTensors(path string) (map[string]Tensor, error) {
	in, err := openInput(path)
	if err != nil {
		return nil, err
	}
	tensors, err := readTensors(in)
	return tensors, errors.Join(err, in.close())
}

// ParseTensors is ReadTensors of the content of a file; name is for messages and recognises nothing
// but the compression.
func ParseTensors(name string, data []byte) (map[string]Tensor, error) {
	in, err := newInput(name, bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	return readTensors(in)
}

func readTensors(in *blob) (map[string]Tensor, error) {
	views, err := listTensors(in)
	if err == errNoTensorFormat {
		return nil, in.fault(0, "not a file of tensors: want .safetensors, .npz, .npy or a zip .pt or .pth")
	}
	if err != nil {
		return nil, err
	}
	if len(views) == 0 {
		return nil, in.fault(0, "holds no tensors")
	}
	tensors := make(map[string]Tensor, len(views))
	for i, v := range views {
		if _, twice := tensors[v.name]; twice {
			return nil, v.fault("the name is used twice")
		}
		if tensors[v.name], err = v.tensor(); err != nil {
			return nil, err
		}
		views[i] = nil // lets go of an inflated entry no other view needs
	}
	return tensors, nil
}

// errNoTensorFormat: the content is of none of the formats; callers know which others they take.
var errNoTensorFormat = errors.New("not a format of tensors")

// listTensors finds the tensors of an input by its content, decoding none.
func listTensors(in *blob) ([]*view, error) {
	magic, err := in.first(16)
	if err != nil {
		return nil, err
	}
	if len(magic) == 0 {
		return nil, in.fault(0, "is empty")
	}
	switch {
	case bytes.HasPrefix(magic, []byte(npyMagic)):
		v, err := viewNPY(in, "")
		if err != nil {
			return nil, err
		}
		return []*view{v}, nil
	case bytes.HasPrefix(magic, []byte("PK")):
		return listArchive(in)
	case bytes.HasPrefix(magic, []byte(legacyMagic)):
		return listLegacy(in)
	case looksLikePickle(magic):
		return nil, in.fault(0, "a pickle, not what torch.save writes: load it in Python and torch.save it, or save it as .safetensors")
	case len(magic) > 8 && magic[8] == '{', in.format() == ".safetensors":
		return listSafetensors(in)
	}
	return nil, errNoTensorFormat
}

// view is a tensor where it lies in its file: checked against the bytes that are there, not yet
// decoded.
type view struct {
	name    string
	blob    *blob
	dtype   dtype
	shape   []int
	strides []int // elements from one index to the next, per dimension; never negative
	offset  int64 // bytes into blob of the first element
	end     int64 // bytes into blob where it must end; -1 while that is not known
}

func (v *view) fault(format string, args ...any) error {
	return v.blob.fault(v.offset, "tensor %s: %w", quote(v.name), fmt.Errorf(format, args...))
}

// newView checks a declared shape against what the platform and, where its size is known, the blob
// can hold. Nil strides mean row-major.
func newView(b *blob, name string, t dtype, shape, strides []int64, offset int64) (*view, error) {
	v := &view{name: name, blob: b, dtype: t, offset: offset, end: -1}
	if len(shape) > maxRank {
		return nil, v.fault("%w", errRank(len(shape)))
	}
	if err := b.mem.parts.spend(viewCost + int64(rankCost*len(shape))); err != nil {
		return nil, v.fault("%w", err)
	}
	_, ok := product(shape)
	if !ok {
		return nil, v.fault("shape %s is impossible", shapeText(shape))
	}
	v.shape = ints(shape)
	if strides == nil {
		v.strides = rowMajor(v.shape)
	} else if v.strides, ok = checkStrides(shape, strides); !ok {
		return nil, v.fault("strides %s are impossible for shape %s", shapeText(strides), shapeText(shape))
	}
	if offset < 0 || offset > maxOffset || v.span() > (maxOffset-offset)/t.size() {
		return nil, v.fault("shape %s is impossible", shapeText(shape))
	}
	return v, v.fits()
}

// fits checks the view against the bytes of its blob, once their number is known.
func (v *view) fits() error {
	if v.blob.size < 0 {
		return nil
	}
	if need := v.span() * v.dtype.size(); need > v.blob.size-v.offset {
		return v.fault("truncated: shape %v needs %d bytes, %d are left", v.shape, need, max(v.blob.size-v.offset, 0))
	}
	if v.end >= 0 && v.blob.size > v.end {
		return v.blob.fault(v.end, "%d bytes follow the data", v.blob.size-v.end)
	}
	return nil
}

// elements is the number of values of the tensor.
func (v *view) elements() int {
	n := 1
	for _, dim := range v.shape {
		n *= dim
	}
	return n
}

// span is the number of stored elements from the first to the last of the view.
func (v *view) span() int64 {
	last := int64(0)
	for i, dim := range v.shape {
		if dim == 0 {
			return 0
		}
		last += int64(dim-1) * int64(v.strides[i])
	}
	return last + 1
}

// contiguous tells whether the elements lie one after another in row-major order.
func (v *view) contiguous() bool {
	want := 1
	for i := len(v.shape) - 1; i >= 0; i-- {
		if v.shape[i] == 0 {
			return true
		}
		if v.shape[i] > 1 && v.strides[i] != want {
			return false
		}
		want *= v.shape[i]
	}
	return true
}

// tensor decodes the view into memory of its own.
func (v *view) tensor() (Tensor, error) {
	if err := v.blob.hold(); err != nil {
		return Tensor{}, err
	}
	if err := v.fits(); err != nil {
		return Tensor{}, err
	}
	n := v.elements()
	if err := v.blob.mem.spend(4 * int64(n)); err != nil {
		return Tensor{}, v.fault("shape %v: %w", v.shape, err)
	}
	t := Tensor{Shape: v.shape, Data: make([]float32, n)}
	if n == 0 {
		return t, nil
	}
	if v.contiguous() {
		return t, v.read(t.Data)
	}
	// A strided view of a storage: decode what it spans, then pick.
	if err := v.blob.mem.spend(4 * v.span()); err != nil {
		return Tensor{}, v.fault("strides %v: %w", v.strides, err)
	}
	spanned := make([]float32, v.span())
	if err := v.read(spanned); err != nil {
		return Tensor{}, err
	}
	gather(t.Data, spanned, v.shape, v.strides)
	return t, nil
}

// read decodes the stored elements from the first of the view on.
func (v *view) read(dst []float32) error {
	size := int(v.dtype.size())
	raw := make([]byte, min(len(dst)*size, 64<<10))
	for at := 0; at < len(dst); {
		n := min(len(dst)-at, len(raw)/size)
		err := v.blob.readFull(v.blob.at, raw[:n*size], v.offset+int64(at)*int64(size), "tensor "+quote(v.name))
		if err != nil {
			return err
		}
		v.dtype.decode(dst[at:at+n], raw)
		at += n
	}
	return nil
}

// gather copies the elements of a strided view in row-major order. No dimension is 0.
func gather[T float32 | int64](dst, src []T, shape, strides []int) {
	index := make([]int, len(shape))
	from := 0
	for i := range dst {
		dst[i] = src[from]
		for d := len(shape) - 1; d >= 0; d-- {
			index[d]++
			from += strides[d]
			if index[d] < shape[d] {
				break
			}
			from -= index[d] * strides[d]
			index[d] = 0
		}
	}
}
