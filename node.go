package flashdb

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// Limits of what a node may hold.
const (
	maxKeyBytes     = 1024
	maxTagBytes     = 256
	maxTags         = 1024
	maxPayloadBytes = 16 << 20
	maxDim          = 8192
)

// A Node is what a collection stores under a key.
type Node struct {
	// Key is the caller's name of the node: any 1 to 1024 bytes.
	Key string
	// Embedding has as many values as Schema.Dim says. Any finite float32 is allowed. A NaN or an
	// infinity is refused with ErrInvalid, and so is an all-zero embedding where Schema.Normalize
	// is set. It is nil in a node that was read and has none in the live release: see Release.
	//
	// A score beyond the range of a float32 is infinite. Of equal scores, the node that was stored
	// first comes first. A decoder whose hidden layers overflow may score NaN, which ranks last.
	Embedding []float32
	// Tags are what filters select by: at most 1024, each valid UTF-8 of 1 to 256 bytes.
	Tags []string
	// Attributes are typed values by name, which filters compare: see PredictOptions.Filter. A
	// value is a string, a bool, a time.Time, or any integer or float. It is returned as a string,
	// bool, time.Time in UTC, to the microsecond, or float64. All values under one name in a
	// collection have one type. A name has 1 to 256 bytes, a string at most 256, and a collection
	// at most 256 names. A nil value is as if the name were not there.
	Attributes Attributes
	// Payload is the caller's own bytes, at most 16 MiB. They are returned unchanged.
	Payload []byte
}

// validate checks a node against its collection's dimension.
func (n *Node) validate(dim int) error {
	if err := validateKey(n.Key); err != nil {
		return err
	}
	if len(n.Embedding) != dim {
		return fmt.Errorf("node %q: %w: its embedding has %d values, the collection holds %d", n.Key, ErrDim, len(n.Embedding), dim)
	}
	if i := firstNonFinite(n.Embedding); i >= 0 {
		return fmt.Errorf("node %q: %w: embedding value %d is %v, want a finite number", n.Key, ErrInvalid, i, n.Embedding[i])
	}
	if err := validatePayload(n.Key, n.Payload); err != nil {
		return err
	}
	if _, _, err := attributesOf(n.Key, n.Attributes); err != nil {
		return err
	}
	return validateTags(n.Key, n.Tags)
}

// validateTags checks the tags of the node under key.
func validateTags(key string, tags []string) error {
	if len(tags) > maxTags {
		return fmt.Errorf("node %q: %w: it has %d tags, at most %d are stored", key, ErrInvalid, len(tags), maxTags)
	}
	for _, t := range tags {
		if len(t) == 0 || len(t) > maxTagBytes || !utf8.ValidString(t) {
			return fmt.Errorf("node %q: %w: tag %q must be valid UTF-8 of 1 to %d bytes", key, ErrInvalid, t, maxTagBytes)
		}
	}
	return nil
}

// validatePayload checks the payload of the node under key.
func validatePayload(key string, payload []byte) error {
	if len(payload) > maxPayloadBytes {
		return fmt.Errorf("node %q: %w: its payload has %d bytes, at most %d are stored", key, ErrInvalid, len(payload), maxPayloadBytes)
	}
	return nil
}

func validateKey(key string) error {
	if len(key) == 0 {
		return fmt.Errorf("%w: empty key: a key has 1 to %d bytes", ErrInvalid, maxKeyBytes)
	}
	if len(key) > maxKeyBytes {
		return fmt.Errorf("%w: key %q... has %d bytes, at most %d are allowed", ErrInvalid, key[:32], len(key), maxKeyBytes)
	}
	return nil
}

// firstNonFinite returns the index of the first NaN or infinity, or -1.
func firstNonFinite(v []float32) int {
	for i, x := range v {
		// The exponent bits of every NaN and infinity are all ones.
		if math.Float32bits(x)&0x7f800000 == 0x7f800000 {
			return i
		}
	}
	return -1
}

// unit returns v scaled to Euclidean length 1, in a new slice.
func unit(v []float32) ([]float32, error) {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	norm := math.Sqrt(sum)
	if norm == 0 {
		return nil, fmt.Errorf("%w: an all-zero embedding has no direction to normalize", ErrInvalid)
	}
	u := make([]float32, len(v))
	for i, x := range v {
		u[i] = float32(float64(x) / norm)
	}
	return u, nil
}
