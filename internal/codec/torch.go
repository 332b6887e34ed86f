package codec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxNesting bounds the walk of containers that contain themselves. Walking shared ones again and
// again is bounded by viewCost.
const maxNesting = 64

// The globals a file may name. Those that reduce knows may be called; storage types only select a
// dtype.
type global uint8

const (
	orderedDict global = iota + 1
	rebuildTensor
	rebuildParameter
	untypedStorage
	rebuildArray
	arrayClass
	arrayTypeOf
	encodeText
)

// storageType is torch.FloatStorage and its kin.
type storageType struct{ dtype dtype }

var torchGlobals = map[string]any{
	"collections.OrderedDict":         orderedDict,
	"torch._utils._rebuild_tensor_v2": rebuildTensor,
	"torch._utils._rebuild_parameter": rebuildParameter,
	"torch.storage.UntypedStorage":    untypedStorage,
	"torch.HalfStorage":               storageType{f16},
	"torch.BFloat16Storage":           storageType{bf16},
	"torch.FloatStorage":              storageType{f32},
	"torch.DoubleStorage":             storageType{f64},
	"torch.CharStorage":               storageType{i8},
	"torch.ShortStorage":              storageType{i16},
	"torch.IntStorage":                storageType{i32},
	"torch.LongStorage":               storageType{i64},
	"torch.ByteStorage":               storageType{u8},
	"torch.BoolStorage":               storageType{boolean},

	"numpy.core.multiarray._reconstruct":  rebuildArray,
	"numpy._core.multiarray._reconstruct": rebuildArray,
	"numpy.ndarray":                       arrayClass,
	"numpy.dtype":                         arrayTypeOf,
	"_codecs.encode":                      encodeText,
}

func findGlobal(module, name string) (any, error) {
	g, allowed := torchGlobals[module+"."+name]
	if !allowed {
		return nil, fmt.Errorf("refused: the file names %s, and nothing but tensors in dicts and lists is read; save the weights alone, with torch.save(model.state_dict(), path)", quote(module+"."+name))
	}
	return g, nil
}

// storage is a persistent id: a data entry of the archive.
type storage struct {
	key      string
	dtype    dtype // 0 for an untyped storage
	elements int64 // as declared; bytes for an untyped storage
}

// storedTensor is a strided view of a storage.
type storedTensor struct {
	storage storage
	offset  int64 // elements
	shape   []int64
	strides []int64
}

// persistent reads ("storage", type, key, location, elements).
func persistent(id any) (any, error) {
	fields, _ := id.(tuple)
	if len(fields) < 5 || fields[0] != "storage" {
		return nil, errors.New("a persistent id that is not a storage")
	}
	key, isText := fields[2].(string)
	n, isInt := fields[4].(int64)
	if !isText || !isInt || n < 0 {
		return nil, errors.New("a storage without a key or a size")
	}
	s := storage{key: key, elements: n}
	switch t := fields[1].(type) {
	case storageType:
		s.dtype = t.dtype
	case global:
		if t != untypedStorage {
			return nil, errors.New("a storage of no storage type")
		}
	default:
		return nil, errors.New("a storage of no storage type")
	}
	return s, nil
}

// build would set attributes. Those of an OrderedDict (_metadata, the versions of a model's
// modules) are dropped, and arrays of NumPy are filled; nothing else has any here. cost is what the
// object has grown by.
func build(object, state any) (built any, cost int, err error) {
	switch object := object.(type) {
	case *dict:
		return object, 0, nil
	case *array:
		err := object.build(state)
		return object, scalarCost * len(object.shape), err
	case *arrayType:
		return object, 0, object.build(state)
	}
	return nil, 0, errors.New("refused: sets attributes of something that is not an OrderedDict")
}

// reduce calls one of the few globals that may be called. The result takes cost bytes of memory.
func reduce(object, arg any) (result any, cost int, err error) {
	args, isTuple := arg.(tuple)
	if !isTuple {
		return nil, 0, errors.New("a call without a tuple of arguments")
	}
	switch object {
	case orderedDict:
		d, err := newOrderedDict(args)
		return d, containerCost + 2*slotCost*len(d.keys), err
	case rebuildTensor:
		t, err := newStoredTensor(args)
		return t, tensorCost + scalarCost*len(t.shape), err
	case rebuildParameter:
		if len(args) > 0 {
			if t, isTensor := args[0].(*storedTensor); isTensor {
				return t, 0, nil
			}
		}
		return nil, 0, errors.New("_rebuild_parameter wants a tensor")
	case rebuildArray:
		return &array{}, tensorCost, nil
	case arrayTypeOf:
		t, err := newArrayType(args)
		return t, scalarCost, err
	case encodeText:
		p, err := encodeLatin(args)
		return p, scalarCost + len(p), err
	}
	return nil, 0, errors.New("refused: calls something that is not a function")
}

// newOrderedDict takes no arguments, or a list of pairs as Python 2 wrote it.
func newOrderedDict(args tuple) (*dict, error) {
	d := &dict{}
	if len(args) == 0 {
		return d, nil
	}
	pairs, isList := args[0].(*sequence)
	if !isList || len(args) > 1 {
		return d, errors.New("OrderedDict of something that is not a list of pairs")
	}
	for _, item := range pairs.items {
		var pair []any
		switch p := item.(type) {
		case tuple:
			pair = p
		case *sequence:
			pair = p.items
		}
		if len(pair) != 2 {
			return d, errors.New("OrderedDict of something that is not a list of pairs")
		}
		d.keys = append(d.keys, pair[0])
		d.values = append(d.values, pair[1])
	}
	return d, nil
}

// newStoredTensor reads (storage, offset, shape, strides, requires_grad, hooks, ...).
func newStoredTensor(args tuple) (*storedTensor, error) {
	t := &storedTensor{}
	wrong := errors.New("_rebuild_tensor_v2 wants storage, offset, shape and strides")
	if len(args) < 4 {
		return t, wrong
	}
	var err error
	var isStorage, isInt bool
	t.storage, isStorage = args[0].(storage)
	t.offset, isInt = args[1].(int64)
	if t.shape, err = integers(args[2]); err == nil {
		t.strides, err = integers(args[3])
	}
	switch {
	case !isStorage || !isInt:
		return t, wrong
	case err != nil:
		return t, fmt.Errorf("%w: %w", wrong, err)
	case len(t.shape) != len(t.strides): // only the shape is charged
		return t, fmt.Errorf("strides %s are impossible for shape %s", shapeText(t.strides), shapeText(t.shape))
	case t.storage.dtype == 0:
		return t, errors.New("a tensor over an untyped storage has no dtype here")
	case t.offset < 0 || t.offset > maxOffset/8:
		return t, fmt.Errorf("storage offset %d is impossible", t.offset)
	}
	return t, nil
}

// integers reads a shape or strides.
func integers(v any) ([]int64, error) {
	items, isTuple := v.(tuple)
	if !isTuple {
		return nil, errors.New("a shape that is not a tuple")
	}
	if len(items) > maxRank {
		return nil, errRank(len(items))
	}
	values := make([]int64, len(items))
	for i, item := range items {
		n, isInt := item.(int64)
		if !isInt {
			return nil, errors.New("a dimension that is not an integer")
		}
		values[i] = n
	}
	return values, nil
}

// looksLikePickle recognises what torch.save wrote before version 1.6: pickles one after another,
// without an archive.
func looksLikePickle(magic []byte) bool {
	return len(magic) > 2 && magic[0] == 0x80 && magic[1] >= 2 && magic[1] <= 5 &&
		strings.IndexByte("\x8a\x95}](cX\x8c", magic[2]) >= 0
}

// listTorch views the tensors of a torch.save archive:
//
//	prefix + data.pkl   a pickle; tensors are views of storages, named by persistent ids
//	prefix + data/KEY   the bytes of a storage
//	prefix + byteorder  "little" or "big"; absent in older files
func listTorch(a *archive, prefix string) ([]*view, error) {
	if err := checkByteOrder(a.entries[prefix+"byteorder"]); err != nil {
		return nil, err
	}
	entry := a.entries[prefix+"data.pkl"]
	if err := a.in.mem.parts.spend(entry.size); err != nil {
		return nil, entry.fault(0, "pickle of %d bytes: %w", entry.size, err)
	}
	if err := entry.hold(); err != nil {
		return nil, err
	}
	var code strings.Builder
	code.Grow(int(entry.size))
	if _, err := io.Copy(&code, io.NewSectionReader(entry.at, 0, entry.size)); err != nil {
		return nil, entry.fault(int64(code.Len()), "read pickle: %w", err)
	}
	root, position, err := unpickle(code.String(), &a.in.mem.parts, persistent)
	if err != nil {
		return nil, entry.fault(int64(position), "%w", err)
	}
	w := walker{in: a.in, entry: func(key string) *blob { return a.entries[prefix+"data/"+key] }}
	if err := w.walk("", root, 0); err != nil {
		return nil, entry.located(err, 0)
	}
	return w.views, nil
}

func checkByteOrder(entry *blob) error {
	if entry == nil {
		return nil
	}
	order, err := entry.first(8)
	if err != nil {
		return err
	}
	if !bytes.Equal(order, []byte("little")) {
		return entry.fault(0, "byte order %s: save it on a little-endian machine", quote(string(order)))
	}
	return nil
}

// walker finds the tensors in nested dicts, lists and tuples and names them by their path. Shared
// and cyclic containers are legal in a pickle: see maxNesting.
type walker struct {
	in    *blob
	entry func(key string) *blob // of a storage; nil where there is none
	views []*view
}

func (w *walker) walk(path string, value any, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("%s: nested more than %d deep", quote(path), maxNesting)
	}
	switch v := value.(type) {
	case *storedTensor:
		view, err := w.view(path, v)
		if err != nil {
			return err
		}
		w.views = append(w.views, view)
	case *array:
		view, err := v.view(w.in, path)
		if err != nil {
			return err
		}
		w.views = append(w.views, view)
	case *dict:
		for i, key := range v.keys {
			if err := w.walkEntry(path, key, v.values[i], depth); err != nil {
				return err
			}
		}
	case *sequence:
		return w.walkItems(path, v.items, depth)
	case tuple:
		return w.walkItems(path, v, depth)
	}
	return nil
}

func (w *walker) walkItems(path string, items []any, depth int) error {
	for i, item := range items {
		if err := w.walkEntry(path, int64(i), item, depth); err != nil {
			return err
		}
	}
	return nil
}

// walkEntry joins a key to the path. Values that hold no tensors are not worth a path, nor a
// complaint about their keys.
func (w *walker) walkEntry(path string, key, value any, depth int) error {
	switch value.(type) {
	case *storedTensor, *array, *dict, *sequence, tuple:
	default:
		return nil
	}
	var name string
	switch k := key.(type) {
	case string:
		name = k
	case int64:
		name = strconv.FormatInt(k, 10)
	default:
		if _, isTensor := value.(*storedTensor); isTensor {
			return fmt.Errorf("%s: a tensor under a key that is neither text nor an integer", quote(path))
		}
		return nil
	}
	if err := w.in.mem.parts.spend(stepCost + int64(len(path)+len(name))); err != nil {
		return fmt.Errorf("%s: %w", quote(path), err)
	}
	if depth > 0 {
		name = path + "." + name
	} else {
		name = strings.Clone(name) // or it would hold the whole pickle
	}
	return w.walk(name, value, depth+1)
}

// view checks a tensor against its storage, and the storage against its entry.
func (w *walker) view(name string, t *storedTensor) (*view, error) {
	entry := w.entry(t.storage.key)
	if entry == nil {
		return nil, fmt.Errorf("tensor %s: the file has no storage %s", quote(name), quote(t.storage.key))
	}
	size := t.storage.dtype.size()
	if t.storage.elements > entry.size/size {
		return nil, entry.fault(0, "truncated: tensor %s wants a storage of %d elements of %d bytes, the entry has %d bytes", quote(name), t.storage.elements, size, entry.size)
	}
	v, err := newView(entry, name, t.storage.dtype, t.shape, t.strides, t.offset*size)
	if err != nil {
		return nil, err
	}
	v.end = entry.size
	return v, nil
}
