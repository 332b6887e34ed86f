//go:build noasm || !(amd64 || arm64)

package simd

import "testing"

// eachClass runs fn with every kernel class of this build: there is one.
func eachClass(t *testing.T, fn func(t *testing.T)) { t.Run("generic", fn) }

// benchEachClass is eachClass for benchmarks.
func benchEachClass(b *testing.B, fn func(b *testing.B)) { b.Run("generic", fn) }
