package ivf

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"

	"github.com/flashdb/flashdb/internal/failpoint"
	"github.com/flashdb/flashdb/internal/format"
	"github.com/flashdb/flashdb/internal/vfs"
)

// writeFile writes the file under a temporary name and then renames it.
func (b *builder) writeFile(ctx context.Context) (err error) {
	tmp := b.path + ".tmp"
	f, err := b.fs.Create(tmp)
	if err != nil {
		return err
	}
	closed := false
	defer func() {
		if err == nil {
			return
		}
		if !closed {
			err = errors.Join(err, f.Close())
		}
		err = errors.Join(err, b.fs.Remove(tmp))
	}()
	if err := b.writeSections(ctx, f); err != nil {
		return err
	}
	failpoint.IndexSync.Reach()
	if err := f.Sync(); err != nil {
		return err
	}
	closed = true
	if err := f.Close(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	failpoint.IndexRename.Reach()
	if err := b.fs.Rename(tmp, b.path); err != nil {
		return err
	}
	failpoint.IndexRenamed.Reach()
	tmp = b.path // the rename is not durable until the directory is synced
	return b.fs.SyncDir(filepath.Dir(b.path))
}

// writer is the state of writing one file.
type writer struct {
	*builder
	f        vfs.File
	header   header
	sections []section

	rowsFile vfs.File // where the rows are in list order: f, or a temporary file when they are left out
	rowsAt   int64    // offset of the first row in it
}

func (b *builder) writeSections(ctx context.Context, f vfs.File) (err error) {
	w := &writer{builder: b, f: f}
	small := w.plan()
	if err := f.Truncate(w.header.length); err != nil {
		return err
	}
	for k, data := range small {
		s := w.section(k)
		s.crc = format.CRC(data)
		if _, err := f.WriteAt(data, s.offset); err != nil {
			return err
		}
	}
	remove, err := w.openRows()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	if err := w.writeRows(ctx); err != nil {
		return err
	}
	if err := w.writeCodes(ctx); err != nil {
		return err
	}
	if err := w.writeKeys(ctx); err != nil {
		return err
	}
	_, err = f.WriteAt(marshalHeader(w.header, w.sections), 0)
	return err
}

// plan lays out the sections and returns the content of the small ones.
func (w *writer) plan() map[kind][]byte {
	y, shape := &w.layout, w.shape
	n, d := len(y.ids), int64(w.opt.Dim)
	byPosition := make([]uint32, n)
	for i, at := range y.at {
		byPosition[at] = y.ids[i]
	}
	books := format.NewWriter(nil)
	w.quantizer.Marshal(books)
	small := map[kind][]byte{
		kindCentroids: format.Float32Bytes(y.centroids),
		kindVariances: format.Float32Bytes(y.variances),
		kindLists:     format.Uint32Bytes(y.begin),
		kindIDs:       format.Uint32Bytes(byPosition),
		kindCodebooks: books.Data(),
	}
	if slices.ContainsFunc(y.exponents, func(e int8) bool { return e != 0 }) {
		exponents := make([]byte, len(y.exponents))
		for l, e := range y.exponents {
			exponents[l] = byte(e)
		}
		small[kindExponents] = exponents
	}
	if y.groups != nil {
		small[kindGroups] = format.Uint32Bytes(y.groups)
	}
	codes := int64(0)
	for l := range y.lists() {
		codes += int64(shape.ListBytes(int(y.begin[l+1] - y.begin[l])))
	}
	lengths := map[kind]int64{kindCodes: codes}
	for k, data := range small {
		lengths[k] = int64(len(data))
	}
	if !w.opt.OmitRows {
		lengths[kindRows] = 4 * int64(n) * d
	}
	if w.wantsKeys() {
		lengths[kindKeys] = 0 // known once they are written, after all other sections
	}
	end := int64(headerBytes + entryBytes*len(lengths))
	for _, k := range sectionOrder() {
		length, ok := lengths[k]
		if !ok {
			continue
		}
		s := section{kind: k, flags: k.flags(), offset: align(end), length: length}
		w.sections = append(w.sections, s)
		end = s.end()
	}
	w.header = header{
		sections: len(w.sections), dim: w.opt.Dim, lists: y.lists(), rows: n, bits: shape.Bits, subDim: shape.SubDim,
		collection: w.opt.Collection, buildLSN: w.opt.BuildLSN, seed: w.opt.Seed, settings: w.opt.settings(shape), length: end,
	}
	return small
}

// sectionOrder returns all kinds in the order of the file: as they are numbered, but the keys last.
func sectionOrder() []kind {
	var order []kind
	for k := kind(1); k < kindEnd; k++ {
		if k != kindKeys {
			order = append(order, k)
		}
	}
	return append(order, kindKeys)
}

// section returns the section of kind k, or nil.
func (w *writer) section(k kind) *section {
	for i := range w.sections {
		if w.sections[i].kind == k {
			return &w.sections[i]
		}
	}
	return nil
}

// openRows decides which file the rows are written to in list order. They are encoded from there.
// The returned function removes a temporary file.
func (w *writer) openRows() (remove func() error, err error) {
	if s := w.section(kindRows); s != nil {
		w.rowsFile, w.rowsAt = w.f, s.offset
		return func() error { return nil }, nil
	}
	name := w.path + ".rows.tmp"
	f, err := w.fs.Create(name)
	if err != nil {
		return nil, err
	}
	remove = func() error { return errors.Join(f.Close(), w.fs.Remove(name)) }
	if err := f.Truncate(4 * int64(len(w.layout.ids)) * int64(w.opt.Dim)); err != nil {
		return nil, errors.Join(err, remove())
	}
	w.rowsFile = f
	return remove, nil
}

// writeRows reads the rows for the third time and writes each to its position. The rows of one list
// in a batch are adjacent in the file, because both are in the order of ids.
func (w *writer) writeRows(ctx context.Context) error {
	y, d := &w.layout, w.opt.Dim
	next := 0 // first of y.ids not yet passed
	done := int64(0)
	type slot struct {
		at  uint32 // position in the file
		row int    // number in the batch
	}
	var slots []slot
	var sorted []float32
	return w.batches(ctx, func(ids []uint32, rows []float32) error {
		slots = slots[:0]
		for i, id := range ids {
			for next < len(y.ids) && y.ids[next] < id {
				next++
			}
			if next < len(y.ids) && y.ids[next] == id {
				slots = append(slots, slot{y.at[next], i})
			}
		}
		slices.SortFunc(slots, func(a, b slot) int { return cmp.Compare(a.at, b.at) })
		sorted = sorted[:0]
		for i, s := range slots {
			sorted = append(sorted, rows[s.row*d:(s.row+1)*d]...)
			if i+1 < len(slots) && slots[i+1].at == s.at+1 {
				continue
			}
			first := int64(s.at) + 1 - int64(len(sorted)/d)
			if _, err := w.rowsFile.WriteAt(format.Float32Bytes(sorted), w.rowsAt+4*int64(d)*first); err != nil {
				return err
			}
			sorted = sorted[:0]
		}
		done += int64(len(ids))
		w.opt.Progress(StageWrite, done, int64(len(y.ids)))
		return nil
	})
}
