//go:build !noasm && (amd64 || arm64)

package simd

import "testing"

// eachClass runs fn with every kernel class the machine has.
func eachClass(t *testing.T, fn func(t *testing.T)) {
	for c := range best() + 1 {
		t.Run(c.String(), func(t *testing.T) {
			use(t, c)
			fn(t)
		})
	}
}

// benchEachClass is eachClass for benchmarks.
func benchEachClass(b *testing.B, fn func(b *testing.B)) {
	for c := range best() + 1 {
		b.Run(c.String(), func(b *testing.B) {
			use(b, c)
			fn(b)
		})
	}
}

// use makes c the active class for the duration of the test.
func use(t testing.TB, c class) {
	before := active
	active = c
	t.Cleanup(func() { active = before })
}
