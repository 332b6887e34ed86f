package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/codec"
)

// writeFile makes a file of what fn writes, compressed as its name says, or
// writes to standard output for "-". The file appears under its name when it is
// whole and synced; one that is there already is left alone.
func (a *app) writeFile(name string, fn func(w io.Writer) error) error {
	if name == standardInput {
		return fn(a.data())
	}
	if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
		if err != nil {
			return err
		}
		return fmt.Errorf("%s exists: remove it, or give another name", name)
	}
	tmp, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	err = errors.Join(fillFile(tmp, name, fn), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// fillFile writes and syncs what fn writes, compressed as the name says.
func fillFile(f *os.File, name string, fn func(w io.Writer) error) error {
	packed, err := codec.NewCompressor(f, name)
	if err != nil {
		return err
	}
	if err := errors.Join(fn(packed), packed.Close()); err != nil {
		return err
	}
	return f.Sync()
}

// writeSpec writes a spec as a person would.
func writeSpec(w io.Writer, spec decoder.Spec) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(spec)
}
