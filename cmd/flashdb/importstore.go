package main

import (
	"context"
	"errors"
	"sync"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
)

// One atomic batch holds batchRows rows, fewer when their embeddings are wide.
const (
	batchRows  = 10_000
	batchBytes = 64 << 20
)

// importFlushBytes is Options.FlushBytes of an import that opens the database itself. Keys in no
// order touch most pages of the tree of keys in each flush, so that larger flushes write less.
const importFlushBytes = 64 << 20

// An importBatch is what one Upsert stores.
type importBatch struct {
	nodes      []flashdb.Node
	embeddings []float32 // what the nodes' embeddings are parts of
}

// A storing is the second pass of an import: one goroutine reads batches while another stores the
// one before, and the note of how far it got is written beside the next one.
type storing struct {
	im   *importer
	c    collection
	rows int64 // to store in all
	size int   // rows of a batch

	full chan *importBatch // read, in order
	free chan *importBatch // stored, to be filled again

	first, last string // keys, the reader's until it ends
	stored      int64
	noted       chan error // result of the note under way; nil: there is none
}

// store stores every selected row that an earlier run has not, and returns the first and the last
// key.
func (im *importer) store(ctx context.Context, c collection, rows int64, p *terminal.Progress) (first, last string, err error) {
	s := &storing{
		im:     im,
		c:      c,
		rows:   rows,
		size:   min(batchRows, max(1, batchBytes/(4*im.schema.Dim)), int(rows)),
		full:   make(chan *importBatch),
		free:   make(chan *importBatch, 2),
		first:  string(im.state.FirstKey),
		stored: im.state.Stored,
	}
	for range cap(s.free) { // one is read while another is stored
		s.free <- &importBatch{}
	}
	before := s.stored
	reading, cancel := context.WithCancel(ctx)
	var reader sync.WaitGroup
	var readErr error
	reader.Go(func() {
		defer close(s.full)
		readErr = s.read(reading, before, p)
	})
	err = s.upsertAll(ctx)
	cancel()
	reader.Wait()
	if err == nil {
		err = readErr
	}
	return s.first, s.last, errors.Join(err, s.wait())
}

// read reads the batches behind the rows that an earlier run has stored.
func (s *storing) read(ctx context.Context, before int64, p *terminal.Progress) error {
	dim, seen := s.im.schema.Dim, int64(0)
	var b *importBatch
	send := func() error {
		select {
		case s.full <- b:
			b = nil
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	next := func() []float32 {
		if b == nil {
			b = <-s.free // there are always batches enough: see store
			b.nodes = b.nodes[:0]
			if b.embeddings == nil {
				b.nodes = make([]flashdb.Node, 0, s.size)
				b.embeddings = make([]float32, s.size*dim)
			}
		}
		at := len(b.nodes) * dim
		return b.embeddings[at : at+dim : at+dim]
	}
	_, err := s.im.scan(ctx, p, "import", next, func(r scannedRow) error {
		if s.first == "" {
			s.first = r.node.Key
		}
		s.last = r.node.Key
		if seen++; seen <= before {
			return nil
		}
		if b.nodes = append(b.nodes, r.node); len(b.nodes) < s.size {
			return nil
		}
		return send()
	})
	if err == nil && b != nil && len(b.nodes) > 0 {
		err = send()
	}
	return err
}

// upsertAll stores what is read, a batch after the other: ids follow rows.
func (s *storing) upsertAll(ctx context.Context) error {
	upsert := s.im.upsert
	if upsert == nil {
		upsert = s.c.Upsert
	}
	for b := range s.full {
		if s.im.state.FirstKey == nil {
			s.im.state.FirstKey = []byte(b.nodes[0].Key)
		}
		if err := upsert(ctx, b.nodes...); err != nil {
			return err
		}
		s.stored += int64(len(b.nodes))
		s.free <- b
		if s.stored == s.rows {
			return nil // there is nothing to go on with
		}
		if err := s.note(ctx); err != nil {
			return err
		}
	}
	return nil
}

// note begins to record how many rows are stored, once the record before is written. What a run
// that ends here stores again is two batches at most.
func (s *storing) note(ctx context.Context) error {
	if err := s.wait(); err != nil {
		return err
	}
	state := s.im.state
	state.Stored = s.stored
	noted := make(chan error, 1)
	s.noted = noted
	go func() { noted <- state.write(ctx, s.c) }()
	return nil
}

// wait returns how the note under way ended.
func (s *storing) wait() error {
	if s.noted == nil {
		return nil
	}
	err := <-s.noted
	s.noted = nil
	return err
}
