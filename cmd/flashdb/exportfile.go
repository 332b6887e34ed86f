package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/codec"
	"github.com/flashdb/flashdb/internal/output"
)

// writeFile makes a file of what fn writes, compressed as its name says, or writes to standard
// output for "-". The file appears under its name when it is whole and synced; one that is there
// already is left alone, unless it is a device or a pipe, which is written to.
func (a *app) writeFile(name string, fn func(w io.Writer) error) error {
	if name == standardInput {
		return fn(a.data())
	}
	target, err := output.Resolve(name)
	if err != nil {
		return err
	}
	if target.Exists && !target.Stream {
		return fmt.Errorf("%s exists: remove it, or give another name", name)
	}
	return target.Write(func(w io.Writer) error { return pack(w, name, fn) })
}

// pack has fn write to w, compressed as the name says.
func pack(w io.Writer, name string, fn func(w io.Writer) error) error {
	packed, err := codec.NewCompressor(w, name)
	if err != nil {
		return err
	}
	return errors.Join(fn(packed), packed.Close())
}

// writeSpec writes a spec as a person would.
func writeSpec(w io.Writer, spec decoder.Spec) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(spec)
}
