package control

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/flashdb/flashdb/internal/wire"
)

// A stream is the reply of one call over the socket. item belongs to the call's goroutine; progress
// may be called from any.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController

	mu      sync.Mutex // guards writing to w, and started
	started bool

	// A separate goroutine writes progress, and only the latest, so that work never waits for a
	// client that reads slowly.
	latestMu sync.Mutex
	latest   any
	wake     chan struct{} // nil until the first progress
	pump     sync.WaitGroup
}

// item writes one part of a long answer. An error means that nobody reads it.
func (s *stream) item(v any) error {
	raw, err := wire.Encode(v)
	if err != nil {
		return err
	}
	return s.send(line{Item: raw}, http.StatusOK)
}

// progress reports how much work is done. It never blocks.
func (s *stream) progress(v any) {
	s.latestMu.Lock()
	defer s.latestMu.Unlock()
	s.latest = v
	if s.wake == nil {
		s.wake = make(chan struct{}, 1)
		s.pump.Go(s.writeProgress)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *stream) writeProgress() {
	for range s.wake {
		s.latestMu.Lock()
		v := s.latest
		s.latest = nil
		s.latestMu.Unlock()
		if v == nil {
			continue // written by the turn before
		}
		raw, err := wire.Encode(v)
		if err != nil || s.send(line{Progress: raw}, http.StatusOK) != nil {
			return
		}
	}
}

// stopProgress waits until the last progress is written. The work has ended, so progress is no
// longer called.
func (s *stream) stopProgress() {
	if s.wake != nil {
		close(s.wake)
		s.pump.Wait()
	}
}

// send writes a line. The first one sends the status ahead.
func (s *stream) send(l line, status int) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime))
	if !s.started {
		s.started = true
		s.w.Header().Set("Content-Type", "application/x-ndjson")
		s.w.WriteHeader(status)
	}
	if _, err := s.w.Write(append(b, '\n')); err != nil {
		return err
	}
	return s.control.Flush()
}
