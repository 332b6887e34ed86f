package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/flashdb/flashdb"
)

// What a node may hold; the database has the same limits.
const (
	maxKeyBytes     = 1024
	maxTagBytes     = 256
	maxTags         = 1024
	maxPayloadBytes = 16 << 20
)

func checkKey(key string) error {
	if key == "" {
		return errors.New("the key is empty")
	}
	if len(key) > maxKeyBytes {
		return fmt.Errorf("the key has %s, at most %d are allowed", counted(len(key), "byte"), maxKeyBytes)
	}
	return nil
}

func checkNode(n flashdb.Node, normalize bool) error {
	if err := checkKey(n.Key); err != nil {
		return err
	}
	zero := true
	for i, x := range n.Embedding {
		if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("value %d is %v, want a finite number", i, x)
		}
		zero = zero && x == 0
	}
	if normalize && zero {
		return errors.New("an all-zero embedding has no direction to normalize")
	}
	if len(n.Tags) > maxTags {
		return fmt.Errorf("%s, at most %d are stored", counted(len(n.Tags), "tag"), maxTags)
	}
	for _, t := range n.Tags {
		if t == "" || len(t) > maxTagBytes || !utf8.ValidString(t) {
			return fmt.Errorf("tag %s must be valid UTF-8 of 1 to %d bytes", strconv.Quote(clip(t, 40)), maxTagBytes)
		}
	}
	if len(n.Payload) > maxPayloadBytes {
		return fmt.Errorf("the payload has %s, at most %s are stored", sized(int64(len(n.Payload))), sized(maxPayloadBytes))
	}
	return nil
}
