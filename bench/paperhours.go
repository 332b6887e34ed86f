package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// hoursRecord is the processor time that a full run would need for one graph.
type hoursRecord struct {
	Training paperTraining      `json:"training"`
	Seconds  map[string]float64 `json:"seconds"` // of one model with a HadamardMLP, by encoder
}

// hours begins a training of each encoder with the settings of the full run, stops it after a
// while, and extrapolates its processor time to all epochs.
func (r *paperRun) hours(ctx context.Context, graph string) (hoursRecord, error) {
	return recorded(r.records, "hours/"+graph, func() (hoursRecord, error) {
		record := hoursRecord{Training: newPaperTraining(false, graph), Seconds: map[string]float64{}}
		p, err := r.graph(graph)
		if err != nil {
			return record, err
		}
		for _, encoder := range r.settings.Encoders {
			fmt.Fprintf(r.log, "%s, %s: what the full run would take\n", graph, encoder)
			seconds, err := r.stageSeconds(ctx, p, record.Training, encoder)
			if err != nil {
				return record, err
			}
			record.Seconds[string(encoder)] = seconds
		}
		return record, nil
	})
}

// stageSeconds extrapolates the processor time of one model. Node2vec has two stages: its walks,
// and then a decoder on what they made, which is timed as one on free embeddings.
func (r *paperRun) stageSeconds(ctx context.Context, p *paperGraph, t paperTraining, encoder train.EncoderKind) (float64, error) {
	if encoder != train.Node2Vec {
		return r.stage(ctx, p, t, encoder, train.StageTrain)
	}
	walks, err := r.stage(ctx, p, t, encoder, train.StageWalks)
	if walks == 0 || err != nil {
		return 0, err
	}
	rest, err := r.stage(ctx, p, t, train.MF, train.StageTrain)
	if rest == 0 || err != nil {
		return 0, err
	}
	return walks + rest, nil
}

// stage times the begin of a stage of a training. It returns 0 where not one step ended in time.
func (r *paperRun) stage(ctx context.Context, p *paperGraph, t paperTraining, encoder train.EncoderKind, stage string) (float64, error) {
	o := train.Options{Encoder: encoder, Decoder: decoder.HadamardMLP, Seed: 1, TimeBudget: r.settings.Probe}
	t.apply(&o, p)
	limited, stop := context.WithCancel(ctx)
	defer stop()
	began, err := processorSeconds()
	if err != nil {
		return 0, err
	}
	share, took := 0.0, 0.0
	start := time.Now()
	o.Progress = func(at train.Progress) {
		done := at.Share
		if stage == train.StageTrain {
			done = (float64(at.Epoch-1) + at.Share) / float64(at.Epochs)
		}
		if at.Stage != stage || done <= share {
			return
		}
		if now, err := processorSeconds(); err == nil {
			share, took = done, now-began
		}
		if time.Since(start) > r.settings.Probe {
			stop() // no further stage
		}
	}
	if _, err := train.Run(limited, p.g, p.split, o); err != nil && !errors.Is(err, context.Canceled) {
		return 0, err
	}
	if ctx.Err() != nil || share == 0 {
		return 0, ctx.Err()
	}
	return took / share, nil
}

// total is the processor time of all models of a graph, in hours.
func (h hoursRecord) total() (hours float64) {
	for _, seconds := range h.Seconds {
		hours += seconds * float64(len(paperDecoders)*fullSeeds) / 3600
	}
	return hours
}

// fullHours writes what a full run would take.
func (p *paperPage) fullHours(string) error {
	if p.settings.Probe == 0 {
		return nil
	}
	p.heading("What the full run takes")
	t := table{header: []string{"graph"}}
	for _, encoder := range p.settings.Encoders {
		t.header = append(t.header, paperNames[string(encoder)]+", s per model")
	}
	t.header = append(t.header, "epochs", "width", "all models, hours")
	sum, missing := 0.0, ""
	for _, graph := range p.settings.Graphs {
		h := p.hours[graph]
		cells := []string{graph}
		for _, encoder := range p.settings.Encoders {
			cell := grouped(int64(math.Round(h.Seconds[string(encoder)])))
			if h.Seconds[string(encoder)] == 0 {
				cell = "not one step in time"
				missing = " Where not one step ended in that time, the models are not in the sum."
			}
			cells = append(cells, cell)
		}
		t.add(append(cells, fmt.Sprint(h.Training.Epochs), fmt.Sprint(h.Training.Dim), fmt.Sprintf("%.1f", h.total()))...)
		sum += h.total()
	}
	p.table(t)
	p.say(`The command without -quick is the full run. For these graphs its trainings take about %.0f hours of
processor time, %.0f hours on two cores. Each figure was measured on this machine: a training of a HadamardMLP with the settings of the full run
began, was stopped after %v, and the processor time was extrapolated to all epochs. All models are %d decoders, of which this is one of the two most expensive, with %d seeds.%s
A training whose validation does not improve for 20 epochs ends earlier. What is measured of the trained models adds little.`,
		sum, sum/2, p.settings.Probe, len(paperDecoders), fullSeeds, missing)
	return nil
}
