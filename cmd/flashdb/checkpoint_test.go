package main

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// A checkpointSpy counts checkpoints; its log is as long as none was asked for.
type checkpointSpy struct {
	database
	asked  int
	failed error
}

func (s *checkpointSpy) Checkpoint(context.Context) error {
	s.asked++
	return s.failed
}

func (s *checkpointSpy) Stats(context.Context) (flashdb.Stats, error) {
	if s.asked == 0 {
		return flashdb.Stats{WALBytes: 5000, AppliedLSN: 3}, nil
	}
	return flashdb.Stats{WALBytes: 24, AppliedLSN: 1234}, nil
}

func TestCheckpointAsksTheDatabase(t *testing.T) {
	var out bytes.Buffer
	spy := &checkpointSpy{}
	a := &app{out: &out, shared: spy}
	require.NoError(t, a.checkpoint(t.Context(), "db"))
	assert.Equal(t, 1, spy.asked)
	assert.Regexp(t, `^checkpointed db in .*: up to write 1,234 in the store, log 24 B\n$`, out.String())

	out.Reset()
	spy.failed = errors.New("disk full")
	require.ErrorIs(t, a.checkpoint(t.Context(), "db"), spy.failed)
	assert.Empty(t, out.String())
}
