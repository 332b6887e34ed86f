package train

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/flashdb/flashdb/internal/format"
)

// A checkpoint is a separate file. It is written to a temporary file and renamed, so it is never
// there in part. Little-endian:
//
//	"ftrn", version (uint32), fingerprint (32 bytes)
//	epochs done, steps, best epoch, nanoseconds spent, count of validations (uint64 each)
//	a validation: epoch (uint64), loss, metric (float64), nanoseconds (uint64)
//	of the networks: steps (uint64), weights, both moments (float32 each)
//	of each table: the same
//	the best weights and tables (float32)
//	CRC32C of all before (uint32)
//
// The number of values follows from graph and options, whose hash is the fingerprint. The size of
// the file is checked before anything is read.
//
// Version 1 has the same layout, but hops had fewer features then: see read.
const (
	checkpointMagic   = "ftrn"
	checkpointVersion = 2
	checkpointHeader  = 4 + 4 + sha256.Size + 5*8
	validationBytes   = 4 * 8
)

// fingerprint is a hash of everything that determines the result of a run, except for the options
// that may change when it is resumed.
func (f *fit) fingerprint(split Split) [sha256.Size]byte {
	h := sha256.New()
	o := *f.o
	o.Epochs, o.Patience, o.TimeBudget, o.Cores, o.MemoryBytes = 0, 0, 0, 0, 0
	o.Checkpoint, o.Resume, o.Progress = "", false, nil
	fmt.Fprintf(h, "%+v %d %d %d %t %d\n", o, f.g.Nodes, f.g.Sources, f.g.Relations, f.g.Directed, f.g.FeatureDim)
	w := bufio.NewWriterSize(h, 1<<16)
	for _, edges := range [][]Edge{f.links, split.Valid, split.ValidNegatives} {
		var b [16]byte
		for _, e := range edges {
			binary.LittleEndian.PutUint32(b[0:], e.Source)
			binary.LittleEndian.PutUint32(b[4:], e.Target)
			binary.LittleEndian.PutUint16(b[8:], e.Relation)
			_, _ = w.Write(b[:]) // a hash never fails
		}
	}
	for _, list := range split.ValidCandidates {
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], uint32(len(list)))
		_, _ = w.Write(b[:])
		for _, node := range list {
			binary.LittleEndian.PutUint32(b[:], node)
			_, _ = w.Write(b[:])
		}
	}
	_, _ = w.Write(format.Float32Bytes(f.g.Features))
	_ = w.Flush()
	return [sha256.Size]byte(h.Sum(nil))
}

// archive writes values to a file, or reads them from one. The first error sticks.
type archive struct {
	w   io.Writer
	r   io.Reader
	crc uint32
	err error
}

// bytes writes b, or fills it.
func (a *archive) bytes(b []byte) {
	if a.err != nil {
		return
	}
	if a.w != nil {
		_, a.err = a.w.Write(b)
	} else {
		_, a.err = io.ReadFull(a.r, b)
	}
	a.crc = format.CRCUpdate(a.crc, b)
}

// number writes or reads a uint64.
func (a *archive) number(x *uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], *x)
	a.bytes(b[:])
	*x = binary.LittleEndian.Uint64(b[:])
}

// integer writes or reads a value that is an int in memory; a negative one keeps its sign.
func (a *archive) integer(x *int) {
	v := uint64(*x)
	a.number(&v)
	*x = int(v)
}

// real writes or reads a float64.
func (a *archive) real(x *float64) {
	v := math.Float64bits(*x)
	a.number(&v)
	*x = math.Float64frombits(v)
}

// span writes or reads a duration.
func (a *archive) span(x *time.Duration) {
	v := uint64(*x)
	a.number(&v)
	*x = time.Duration(v)
}

// floats writes or reads values, in parts.
func (a *archive) floats(x []float32) {
	const part = 1 << 14
	var buf [4 * part]byte
	for len(x) > 0 && a.err == nil {
		n := min(part, len(x))
		b := buf[:4*n]
		if a.w != nil {
			for i, v := range x[:n] {
				binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
			}
		}
		a.bytes(b)
		for i := range x[:n] {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		x = x[n:]
	}
}

// archive writes the state of the run, or reads it. The file has room for most validations.
func (f *fit) archive(a *archive, spent *time.Duration, most int64) {
	s := &f.state
	a.integer(&s.epoch)
	a.number(&s.step)
	a.integer(&s.best)
	a.span(spent)
	count := len(s.history)
	a.integer(&count)
	if a.r != nil {
		if a.err == nil && (count != s.epoch || s.best < 0 || s.best >= count) {
			a.err = fmt.Errorf("%d epochs, %d validations, of which number %d was the best", s.epoch, count, s.best)
		}
		if a.err != nil {
			return
		}
		if int64(count) > most {
			a.err = fmt.Errorf("%d validations in a file that has room for %d", count, most)
			return
		}
		s.history = make([]Epoch, count)
		f.keep(&s.kept) // makes room
	}
	for i := range s.history {
		e := &s.history[i]
		a.integer(&e.Epoch)
		a.real(&e.Loss)
		a.real(&e.Valid)
		a.span(&e.Elapsed)
	}
	a.integer(&f.p.step)
	for _, x := range [][]float32{f.p.value, f.p.m, f.p.v} {
		a.floats(x)
	}
	for _, t := range f.enc.tables() {
		a.integer(&t.step)
		for _, x := range [][]float32{t.value, t.m, t.v} {
			a.floats(x)
		}
	}
	a.floats(s.kept.params)
	for _, x := range s.kept.tables {
		a.floats(x)
	}
}

// size returns the size of a checkpoint after some epochs.
func (f *fit) size(epochs int64) int64 {
	values, counters := int64(len(f.p.value)), int64(1)
	for _, t := range f.enc.tables() {
		values, counters = values+int64(len(t.value)), counters+1
	}
	return checkpointHeader + epochs*validationBytes + 8*counters + 4*4*values + 4
}

// mayCheckpoint refuses, before a long run, a file that cannot be written after its first epoch, or
// that holds something else.
func mayCheckpoint(path string) error {
	if info, err := os.Stat(path); err == nil {
		if !info.Mode().IsRegular() {
			return fmt.Errorf("checkpoint %s is no regular file: name another", path)
		}
		if is, err := isCheckpoint(path); err != nil {
			return fmt.Errorf("checkpoint %s: %w", path, err)
		} else if info.Size() > 0 && !is {
			return fmt.Errorf("%s is no checkpoint, and would be overwritten: name another file, or remove it", path)
		}
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("checkpoint %s cannot be written: %w", path, err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// isCheckpoint tells whether a file begins as a checkpoint of any version does.
func isCheckpoint(path string) (is bool, err error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	begin := make([]byte, len(checkpointMagic))
	n, err := io.ReadFull(file, begin)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return string(begin[:n]) == checkpointMagic, err
}

// save replaces the checkpoint.
func (f *fit) save() error {
	path := f.o.Checkpoint
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	err = f.write(file)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // the first error is returned
		return fmt.Errorf("write checkpoint %s: %w", path, err)
	}
	return nil
}

func (f *fit) write(file io.Writer) error {
	w := bufio.NewWriterSize(file, 1<<20)
	a := &archive{w: w}
	a.bytes([]byte(checkpointMagic))
	a.bytes(binary.LittleEndian.AppendUint32(nil, checkpointVersion))
	a.bytes(f.print[:])
	spent := f.elapsed()
	f.archive(a, &spent, 0)
	a.bytes(binary.LittleEndian.AppendUint32(nil, a.crc))
	return errors.Join(a.err, w.Flush())
}

// resume sets the run to its checkpoint, if there is one, and reports whether there was.
func (f *fit) resume() (bool, error) {
	path := f.o.Checkpoint
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read checkpoint: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return false, fmt.Errorf("read checkpoint: %w", err)
	}
	if err := f.read(bufio.NewReaderSize(file, 1<<20), info.Size()); err != nil {
		return false, fmt.Errorf("read checkpoint %s: %w", path, err)
	}
	return true, nil
}

// read sets the run to a checkpoint of a known size. After an error the run must not be used.
func (f *fit) read(r io.Reader, size int64) error {
	var head [4 + 4 + sha256.Size]byte
	a := &archive{r: r}
	a.bytes(head[:])
	if a.err != nil || string(head[:4]) != checkpointMagic {
		return errors.New("this is no checkpoint of a training: remove it, or name another file")
	}
	version := binary.LittleEndian.Uint32(head[4:])
	if err := format.CheckVersion("checkpoint", version, checkpointVersion); err != nil {
		return err
	}
	if version == 1 && f.o.Encoder == Hops {
		return errors.New("an earlier version of flashdb wrote it, whose encoder hops had other features: remove it, and train from the beginning")
	}
	if [sha256.Size]byte(head[8:]) != f.print {
		return errors.New("it is of another graph, split or options: give those it began with, or remove it")
	}
	most := (size - f.size(0)) / validationBytes
	if most < 1 || f.size(most) != size {
		return fmt.Errorf("%d bytes are not the size of a whole checkpoint: remove it", size)
	}
	f.archive(a, &f.spent, most)
	if a.err == nil && f.size(int64(f.state.epoch)) != size {
		a.err = fmt.Errorf("%d bytes for %d epochs", size, f.state.epoch)
	}
	want := a.crc
	var crc [4]byte
	a.bytes(crc[:])
	switch {
	case a.err != nil:
		return fmt.Errorf("it is damaged: %w: remove it", a.err)
	case binary.LittleEndian.Uint32(crc[:]) != want:
		return errors.New("it is damaged: its checksum does not fit: remove it")
	}
	return nil
}
