package codec

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
)

// legacyMagic is the first pickle of what torch.save wrote before version 1.6, and still writes
// when told to: a number.
const legacyMagic = "\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."

// listLegacy views the tensors of such a file:
//
//	4 pickles   the magic number, the version of the protocol, facts about the machine, the object
//	a pickle    the keys of the storages, a list
//	for each    elements, int64 little-endian, and the bytes of the storage
//
// Files of NumPy arrays alone, such as the splits of OGB, have no storages.
func listLegacy(in *blob) ([]*view, error) {
	if err := in.hold(); err != nil {
		return nil, err
	}
	if err := in.mem.spend(in.size); err != nil {
		return nil, in.fault(0, "%w", err)
	}
	var content strings.Builder
	content.Grow(int(in.size))
	if _, err := io.Copy(&content, io.NewSectionReader(in.at, 0, in.size)); err != nil {
		return nil, in.fault(int64(content.Len()), "read: %w", err)
	}
	l := legacy{in: in, content: content.String(), entries: map[string]*blob{}}
	root, err := l.pickles()
	if err != nil {
		return nil, in.fault(int64(l.pos), "%w", err)
	}
	w := walker{in: in, entry: func(key string) *blob { return l.entries[key] }}
	if err := w.walk("", root, 0); err != nil {
		return nil, in.located(err, 0)
	}
	return w.views, nil
}

// legacy is a cursor over such a file.
type legacy struct {
	in      *blob
	content string
	pos     int
	types   map[string]dtype // of the storages that the object names
	entries map[string]*blob // by key
}

// pickles reads all of the file and returns the object.
func (l *legacy) pickles() (root any, err error) {
	var values [5]any
	l.types = map[string]dtype{}
	for i := range values {
		var end int
		values[i], end, err = unpickle(l.content[l.pos:], &l.in.mem.parts, l.storage)
		if l.pos += end; err != nil {
			return nil, err
		}
	}
	keys, isList := values[4].(*sequence)
	if !isList {
		return nil, errors.New("the keys of the storages are not a list")
	}
	for _, key := range keys.items {
		name, isText := key.(string)
		t, known := l.types[name]
		if !isText || !known {
			return nil, errors.New("a storage that no tensor names")
		}
		if err := l.take(name, t); err != nil {
			return nil, err
		}
	}
	if l.pos < len(l.content) {
		return nil, errors.New("bytes follow the last storage")
	}
	return values[3], nil
}

// storage notes the type of each storage: its bytes come later, and say only how many elements.
func (l *legacy) storage(id any) (any, error) {
	v, err := persistent(id)
	if s, ok := v.(storage); ok && s.dtype != 0 {
		l.types[s.key] = s.dtype
	}
	return v, err
}

// take finds the bytes of the next storage.
func (l *legacy) take(key string, t dtype) error {
	rest := l.content[l.pos:]
	if len(rest) < 8 {
		return errors.New("truncated: a storage has no size")
	}
	n := binary.LittleEndian.Uint64([]byte(rest[:8]))
	if n > uint64(len(rest)-8)/uint64(t.size()) {
		return errors.New("truncated: a storage reaches past the end of the file")
	}
	size := int64(n) * t.size()
	at := io.NewSectionReader(strings.NewReader(l.content), int64(l.pos)+8, size)
	l.entries[key] = &blob{file: l.in.file, section: "storage " + quote(key), mem: l.in.mem, at: at, size: size}
	l.pos += 8 + int(size)
	return nil
}
