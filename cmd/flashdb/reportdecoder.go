package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/report"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/decoder"
)

// decoder describes one decoder and what was calibrated with it.
func (r *reporter) decoder(ctx context.Context, name string, calibrations []flashdb.Calibration) (report.Decoder, error) {
	d, err := r.c.Decoder(ctx, name)
	if err != nil {
		return report.Decoder{}, err
	}
	out := report.Decoder{Name: show.Text(name), Kind: d.String(), Relations: shownList(d.Spec().Relations, relationsNamed)}
	tensors := d.Tensors()
	for i, l := range d.Spec().Layers {
		shape := tensors[l.Weight].Shape
		then := []string{string(l.Activation)}
		if l.Activation == "" {
			then[0] = string(decoder.Identity)
		}
		if l.Norm != nil {
			then = append(then, strings.ReplaceAll(l.Norm.Kind, "_", " "))
		}
		if l.Residual != "" {
			then = append(then, "residual of "+l.Residual)
		}
		out.Layers = append(out.Layers, report.Layer{In: shape[1], Out: shape[0], After: strings.Join(then, ", "), Output: i == len(d.Spec().Layers)-1})
	}
	for _, of := range calibrations {
		if of.Decoder != name {
			continue
		}
		for _, f := range of.Frontiers {
			frontier := report.Frontier{
				K: f.K, Rows: of.Rows, Exact: of.Exact, Wanted: defaultRecall, Relations: namesRelations(of),
				Sources: fmt.Sprintf("%s of %s", show.Count(of.Sources, "sampled source"), show.Text(of.SourceCollection)),
			}
			for _, p := range f.Plans {
				frontier.Plans = append(frontier.Plans, report.Plan{
					Text: p.Plan.String(), Mean: p.Mean, P5: p.P5, Worst: p.Worst, Bound: p.Bound, RowsScored: p.RowsScored, Time: p.Time,
					Relation: p.Relation, RelationMean: p.RelationMean,
				})
			}
			out.Frontiers = append(out.Frontiers, frontier)
		}
	}
	return out, nil
}

// An activity counts active neurons, layer by layer.
type activity struct {
	c         collection
	name      string
	layers    []report.Layer // of the page; nil when the decoder is no network
	d         decoder.Decoder
	bound     decoder.Bound
	scratch   decoder.Scratch
	hits, any []float64 // active neurons, by layer
	nHits     int       // pairs
	nAny      int
}

func newActivity(c collection, p *report.Page, name string) *activity {
	a := &activity{c: c, name: name}
	for i := range p.Decoders {
		if p.Decoders[i].Name == show.Text(name) {
			a.layers = p.Decoders[i].Layers
		}
	}
	a.hits, a.any = make([]float64, len(a.layers)), make([]float64, len(a.layers))
	return a
}

// add looks at a source with its hits, and with some other node.
func (a *activity) add(ctx context.Context, source []float32, hits []flashdb.Hit, other string) (err error) {
	if len(a.layers) == 0 {
		return nil
	}
	if a.d == nil {
		if a.d, err = a.c.Decoder(ctx, a.name); err != nil {
			return err
		}
	}
	a.bound = a.d.Bind(a.bound, source)
	for _, h := range hits {
		if err := a.count(ctx, h.Key, a.hits, &a.nHits); err != nil {
			return err
		}
	}
	return a.count(ctx, other, a.any, &a.nAny)
}

func (a *activity) count(ctx context.Context, key string, active []float64, pairs *int) error {
	network, ok := a.bound.(decoder.Neurons)
	if !ok {
		return nil
	}
	n, err := embedded(ctx, a.c, key)
	if errors.Is(err, flashdb.ErrNotFound) {
		return nil // deleted since, or of the sources' collection
	}
	if err != nil {
		return err
	}
	*pairs++
	neurons := network.Active(&a.scratch, nil, n.Embedding)
	spec := a.d.Spec()
	for i := range a.layers {
		if act := spec.Layers[i].Activation; act == "" || act == decoder.Identity {
			continue
		}
		for _, on := range neurons[:a.layers[i].Out] {
			if on {
				active[i]++
			}
		}
		neurons = neurons[a.layers[i].Out:]
	}
	return nil
}

// done turns the counts into shares.
func (a *activity) done() {
	for i := range a.layers {
		l := &a.layers[i]
		act := a.d.Spec().Layers[i].Activation
		if l.HasActive = act != "" && act != decoder.Identity && a.nHits > 0; !l.HasActive {
			continue
		}
		l.ActiveHits = a.hits[i] / float64(a.nHits*l.Out)
		l.ActiveAny = a.any[i] / float64(max(1, a.nAny)*l.Out)
	}
}
