package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/flashlight"
)

// addVariants adds the recall of other seeds than the learned one, made of the same prototypes: the
// mean gradient of the n nearest stored sources, or of all, and its sums with the ones seed, each
// divided by its length.
func (b *seedBench) addVariants(ctx context.Context, t *table, prototypes []flashlight.Prototype) error {
	for i, n := range []int{len(prototypes), 16, 64} {
		if n > len(prototypes) || (n == len(prototypes) && i > 0) {
			continue // that is the mean of all
		}
		for _, ones := range []float64{0, 0.1, 1} {
			name := fmt.Sprintf("nearest %d", n)
			if n == len(prototypes) {
				name = "mean of all"
			}
			if ones > 0 {
				name = fmt.Sprintf("%g ones + %s", ones, name)
			}
			if err := b.addRow(ctx, t, name, func(q *flashlight.Query) {
				q.Plan.Seed = flashlight.SeedOnes
				q.Bound = seeded{q.Bound, variant(q, prototypes, n, ones)}
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// seeded is a bound decoder with a ones seed of our own.
type seeded struct {
	decoder.Bound
	query []float32
}

// Ones implements decoder.Bound.
func (s seeded) Ones(dst []float32) { copy(dst, s.query) }

// variant returns the mean gradient of the n prototypes whose sources have the highest cosine with
// that of q, for q's source, plus so much of the ones seed.
func variant(q *flashlight.Query, prototypes []flashlight.Prototype, n int, ones float64) []float32 {
	type near struct {
		p      *flashlight.Prototype
		cosine float64
	}
	all := make([]near, len(prototypes))
	for i := range prototypes {
		p := &prototypes[i]
		all[i] = near{p, inner(p.Source, q.Source) / length(p.Source)}
	}
	slices.SortStableFunc(all, func(a, b near) int { return cmp.Compare(b.cosine, a.cosine) })
	query, first := make([]float32, len(q.Source)), make([]float32, len(q.Source))
	for _, a := range all[:min(n, len(all))] {
		for i, g := range a.p.Gradient {
			query[i] += g
		}
	}
	q.Bound.(decoder.Separable).FromZ(query, query)
	q.Bound.Ones(first)
	learned, own := length(query), length(first)
	for i := range query {
		query[i] = float32(float64(query[i])/learned + ones*float64(first[i])/own)
	}
	return query
}

func inner(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

func length(v []float32) float64 { return math.Sqrt(inner(v, v)) }
