package flashdb

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBatchLimit checks that the error for a batch that is too large names the write that exceeds
// the limit.
func TestBatchLimit(t *testing.T) {
	var b Batch
	b.Upsert("c", Node{Key: "a", Embedding: make([]float32, 100), Tags: []string{"1234567890"}})
	b.SetPayload("c", "a", make([]byte, 500))
	b.SetMeta("c", "m", "value")
	b.Link("c", Edge{Source: "a", Target: "a"}, Edge{Source: "a", Target: "a", Relation: "a name of 18 bytes"})
	require.NoError(t, b.fits(1000))
	err := b.fits(943)
	require.ErrorContains(t, err, `write 4 of 4, link in "c": invalid argument: up to here the batch has 944 bytes`)
	err = b.fits(900)
	require.ErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, `write 2 of 4, set payload in "c": invalid argument: up to here the batch has 912 bytes, and at most 900 can be atomic: split it`)
}
