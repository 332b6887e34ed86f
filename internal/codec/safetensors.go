package codec

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// maxSafetensorsHeader is the format's own limit.
const maxSafetensorsHeader = 100_000_000

var safetensorsTypes = map[string]dtype{
	"F16": f16, "BF16": bf16, "F32": f32, "F64": f64, "BOOL": boolean,
	"I8": i8, "I16": i16, "I32": i32, "I64": i64, "U8": u8, "U16": u16, "U32": u32, "U64": u64,
}

// listSafetensors reads the header of
//
//	u64 n, little-endian
//	n bytes of JSON: {"name": {"dtype", "shape", "data_offsets": [begin, end]}, ..., "__metadata__": {...}}
//	data: the tensors, back to back, offsets counted from here
//
// As the format demands, the tensors must cover the data without gap or overlap.
func listSafetensors(b *blob) ([]*view, error) {
	at, done, err := b.pass()
	if err != nil {
		return nil, err
	}
	defer done() //nolint:errcheck // nothing was written
	var prefix [8]byte
	if err := b.readFull(at, prefix[:], 0, "safetensors header length"); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > maxSafetensorsHeader {
		return nil, b.fault(0, "safetensors header of %d bytes: the format allows %d", n, maxSafetensorsHeader)
	}
	header, err := b.readHeader(at, 8, int64(n), "safetensors header")
	if err != nil {
		return nil, err
	}
	views, err := parseSafetensorsHeader(b, header)
	if err != nil {
		return nil, err
	}
	return views, checkCover(b, views, 8+int64(n))
}

func parseSafetensorsHeader(b *blob, header []byte) ([]*view, error) {
	dec := json.NewDecoder(bytes.NewReader(header))
	broken := func(err error) error {
		return b.fault(8+dec.InputOffset(), "safetensors header: %w", noEOF(err))
	}
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return nil, broken(cmp.Or(err, errors.New("want a JSON object")))
	}
	var views []*view
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, broken(err)
		}
		name, _ := token.(string) // the tokenizer lets nothing else be a key
		if name == "__metadata__" {
			if err := dec.Decode(&map[string]string{}); err != nil {
				return nil, broken(fmt.Errorf("__metadata__: %w", err))
			}
			continue
		}
		at := dec.InputOffset()
		var entry safetensorsEntry
		if err := dec.Decode(&entry); err != nil {
			return nil, broken(fmt.Errorf("tensor %s: %w", quote(name), err))
		}
		v, err := entry.view(b, name, 8+int64(len(header)))
		if err != nil {
			return nil, b.located(err, 8+at)
		}
		views = append(views, v)
	}
	if _, err := dec.Token(); err != nil {
		return nil, broken(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, broken(errors.New("more than one JSON value"))
	}
	return views, nil
}

type safetensorsEntry struct {
	Type    string  `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"`
}

// view checks one header entry; data is where the tensor data begins.
func (e *safetensorsEntry) view(b *blob, name string, data int64) (*view, error) {
	t, known := safetensorsTypes[e.Type]
	if !known {
		return nil, fmt.Errorf("tensor %s: dtype %s is not supported: convert it to F32", quote(name), quote(e.Type))
	}
	if e.Shape == nil || len(e.Offsets) != 2 {
		return nil, fmt.Errorf("tensor %s: want dtype, shape and two data_offsets", quote(name))
	}
	begin, end := e.Offsets[0], e.Offsets[1]
	if begin < 0 || end < begin || end > maxOffset-data {
		return nil, fmt.Errorf("tensor %s: data_offsets %v are impossible", quote(name), e.Offsets)
	}
	n, ok := product(e.Shape)
	if !ok || n*t.size() != end-begin {
		return nil, fmt.Errorf("tensor %s: shape %s of %s does not fill data_offsets %v", quote(name), shapeText(e.Shape), e.Type, e.Offsets)
	}
	return newView(b, name, t, e.Shape, nil, data+begin)
}

// checkCover demands that the tensors follow each other from data to the end of the file, and sets
// where the file must end on each.
func checkCover(b *blob, views []*view, data int64) error {
	sorted := slices.SortedFunc(slices.Values(views), func(v, w *view) int {
		return cmp.Or(cmp.Compare(v.offset, w.offset), cmp.Compare(v.span(), w.span()))
	})
	at := data
	for _, v := range sorted {
		if v.offset != at {
			return v.fault("data begins at byte %d, the tensor before it ends at %d", v.offset, at)
		}
		at += v.span() * v.dtype.size()
	}
	for _, v := range views {
		v.end = at
		if err := v.fits(); err != nil {
			return err
		}
	}
	return nil
}
