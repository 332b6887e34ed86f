package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/internal/codec"
)

// maxTypedEmbedding bounds what put reads from standard input.
const maxTypedEmbedding = 1 << 20

// readEmbedding reads what put's --embedding names.
func (a *app) readEmbedding(arg string) ([]float32, error) {
	if path, ok := strings.CutPrefix(arg, "@"); ok {
		return readOneRow(path)
	}
	if arg == "-" {
		b, err := io.ReadAll(io.LimitReader(a.in, maxTypedEmbedding+1))
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		if len(b) > maxTypedEmbedding {
			return nil, fmt.Errorf("standard input holds more than %s", show.Bytes(maxTypedEmbedding))
		}
		arg = string(b)
	}
	return parseEmbedding(arg)
}

// parseEmbedding reads numbers separated by commas or spaces, in brackets or not.
func parseEmbedding(s string) ([]float32, error) {
	s = strings.TrimSpace(s)
	if inner, ok := strings.CutPrefix(s, "["); ok {
		if s, ok = strings.CutSuffix(inner, "]"); !ok {
			return nil, errors.New("the bracket [ is not closed")
		}
	}
	fields := strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\r' || r == '\t' })
	if len(fields) == 0 {
		return nil, errors.New("no numbers: give them as 0.1,0.2,..., @FILE or -")
	}
	row := make([]float32, len(fields))
	for i, f := range fields {
		v, err := strconv.ParseFloat(f, 32)
		if err != nil {
			return nil, fmt.Errorf("value %d, %s, is not a number that fits a float32%s", i, strconv.Quote(show.Clip(f, 40)), typedFile(s))
		}
		row[i] = float32(v)
	}
	return row, nil
}

// readOneRow reads a file that holds a single row.
func readOneRow(path string) ([]float32, error) {
	tensors, err := codec.ReadTensors(path)
	if err != nil {
		return nil, err
	}
	if len(tensors) != 1 {
		return nil, fmt.Errorf("%s holds %s, want one row", path, show.Count(len(tensors), "array"))
	}
	for _, t := range tensors {
		if n := len(t.Shape); n > 0 && t.Shape[n-1] == len(t.Data) {
			return t.Data, nil
		}
		return nil, fmt.Errorf("%s holds an array of shape %v, want one row", path, t.Shape)
	}
	panic("unreachable: there is one tensor")
}
