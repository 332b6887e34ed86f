package codec

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxLine is the longest line read.
const maxLine = 4 << 20

// lines reads a text input line by line.
type lines struct {
	in     *blob
	stream io.Closer
	r      *bufio.Reader
	number int   // of the line returned last, from 1
	start  int64 // its first byte
	next   int64 // first byte of the line after it
	long   []byte
}

func openLines(in *blob) (*lines, error) {
	stream, err := in.stream()
	if err != nil {
		return nil, in.located(err, 0)
	}
	l := &lines{in: in, stream: stream, r: bufio.NewReaderSize(stream, 64<<10)}
	switch mark, _ := l.r.Peek(3); {
	case bytes.Equal(mark, []byte("\xef\xbb\xbf")): // spreadsheets write one
		n, _ := l.r.Discard(3) // they are in the buffer
		l.next = int64(n)
	case bytes.HasPrefix(mark, []byte("\xff\xfe")), bytes.HasPrefix(mark, []byte("\xfe\xff")):
		return nil, errors.Join(in.fault(0, "text in UTF-16: save it as UTF-8"), stream.Close())
	}
	return l, nil
}

func (l *lines) close() error { return errors.Join(l.stream.Close(), l.in.close()) }

// read returns the next line that is not blank, without its line end ("\n" or "\r\n"). It is valid
// until the next read. At the end it returns io.EOF.
func (l *lines) read() ([]byte, error) {
	for {
		line, err := l.readOne()
		if err != nil || len(bytes.TrimSpace(line)) > 0 {
			return line, err
		}
	}
}

func (l *lines) readOne() ([]byte, error) {
	l.start = l.next
	l.number++
	line, err := l.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		l.long = l.long[:0]
		for errors.Is(err, bufio.ErrBufferFull) && len(l.long) <= maxLine {
			l.long = append(l.long, line...)
			line, err = l.r.ReadSlice('\n')
		}
		l.long = append(l.long, line...)
		line = l.long
		if len(line) > maxLine {
			return nil, l.fault(0, "longer than %d bytes", maxLine)
		}
	}
	l.next += int64(len(line))
	if errors.Is(err, io.EOF) && len(line) > 0 {
		err = nil // the last line may lack its end
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, l.fault(len(line), "read: %w", err)
	}
	line = bytes.TrimSuffix(line, []byte("\n"))
	return bytes.TrimSuffix(line, []byte("\r")), nil
}

// fault reports a defect of the line read last, at a byte of it.
func (l *lines) fault(at int, format string, args ...any) error {
	return &Error{File: l.in.file, Line: l.number, Offset: l.start + int64(at), Cause: fmt.Errorf(format, args...)}
}

func (l *lines) position() string { return fmt.Sprintf("line %d", l.number) }
