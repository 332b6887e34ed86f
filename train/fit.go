package train

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// fit is the state of a run: what it has done so far, and the best model.
type fit struct {
	*trainer
	links []Edge // to learn
	valid *validator
	began time.Time
	spent time.Duration // by the earlier runs that this one resumes

	print [sha256.Size]byte // hash of what determines the result: see fingerprint
	state fitState
	order []uint32 // of links, for the current epoch
	told  time.Time
}

// fitState is what a checkpoint holds besides the parameters.
type fitState struct {
	epoch   int // completed
	step    uint64
	history []Epoch
	best    int // index in history; -1: none
	kept    snapshot
	stopped string
}

// snapshot is a copy of all parameters.
type snapshot struct {
	params []float32
	tables [][]float32
}

// keep copies the parameters. Memory of an earlier copy is reused.
func (t *trainer) keep(s *snapshot) {
	s.params = append(s.params[:0], t.p.value...)
	tables := t.enc.tables()
	s.tables = slices.Grow(s.tables[:0], len(tables))[:len(tables)]
	for i, table := range tables {
		s.tables[i] = append(s.tables[i][:0], table.value...)
	}
}

// restore sets the parameters to a copy.
func (t *trainer) restore(s *snapshot) {
	copy(t.p.value, s.params)
	for i, table := range t.enc.tables() {
		copy(table.value, s.tables[i])
	}
}

// run trains epoch by epoch until there is a reason to stop. Afterwards the parameters are the best
// ones, and the encoder sees all links. It fails only if no epoch was completed, or if a checkpoint
// could not be written.
func (f *fit) run(ctx context.Context) error {
	for f.state.stopped == "" {
		switch {
		case f.state.epoch >= f.o.Epochs:
			f.state.stopped = "all epochs are done"
		case f.patienceLost():
			f.state.stopped = fmt.Sprintf("no better validation in %d epochs", f.o.Patience)
		default:
			if err := f.oneEpoch(ctx); err != nil {
				return err
			}
		}
	}
	if f.state.best < 0 {
		return fmt.Errorf("no epoch was completed: %w", context.Cause(ctx))
	}
	f.restore(&f.state.kept)
	f.enc.see(f.links)
	return nil
}

// patienceLost reports whether the last validations were all worse than the best.
func (f *fit) patienceLost() bool {
	return f.o.Patience > 0 && f.valid.links > 0 && f.state.best >= 0 && len(f.state.history)-1-f.state.best >= f.o.Patience
}

// oneEpoch learns every link once, validates, and keeps the parameters if they are the best. The
// links are dealt into folds. The links of a fold are learned while the encoder sees the graph
// without them. That is as in use, where the links to predict are not in the graph. A link that
// shows in the embeddings of its ends would teach nothing.
func (f *fit) oneEpoch(ctx context.Context) error {
	rng := rand.New(rand.NewPCG(mix(f.o.Seed, uint64(f.state.epoch)), streamOrder))
	for i := range f.order {
		f.order[i] = uint32(i)
	}
	rng.Shuffle(len(f.order), func(i, j int) { f.order[i], f.order[j] = f.order[j], f.order[i] })
	var loss float64
	done := 0
	for fold := range f.o.Folds {
		if f.state.stopped != "" {
			break // the features of further folds would take time for nothing
		}
		from, to := len(f.order)*fold/f.o.Folds, len(f.order)*(fold+1)/f.o.Folds
		if f.o.Folds > 1 {
			f.enc.see(f.without(from, to))
		}
		for ; done < to && f.state.stopped == ""; done = min(to, done+f.o.BatchEdges) {
			loss += f.step(f.order[done:min(to, done+f.o.BatchEdges)], mix(f.o.Seed, f.state.step), adam{f.rate(done), f.o.WeightDecay})
			f.state.step++
			f.interrupted(ctx)
			f.tell(done, loss)
		}
	}
	if f.o.Folds > 1 {
		f.enc.see(f.links)
	}
	if ctx.Err() != nil {
		return nil // an epoch that was ended early is not kept
	}
	f.state.epoch++
	return f.conclude(loss / float64(max(1, done)))
}

// without returns the links except a range of the order.
func (f *fit) without(from, to int) []Edge {
	rest := make([]Edge, 0, len(f.links)-(to-from))
	for _, part := range [][]uint32{f.order[:from], f.order[to:]} {
		for _, i := range part {
			rest = append(rest, f.links[i])
		}
	}
	return rest
}

// interrupted ends the run if it was cancelled or its time is used up.
func (f *fit) interrupted(ctx context.Context) {
	switch {
	case ctx.Err() != nil:
		f.state.stopped = "cancelled"
	case f.o.TimeBudget > 0 && f.elapsed() >= f.o.TimeBudget:
		f.state.stopped = "the time budget is used up"
	}
}

func (f *fit) elapsed() time.Duration { return f.spent + time.Since(f.began) }

// The learning rate grows over the first half epoch (warmup), from a tenth of its full size. Over
// the whole run it also falls linearly, to lastRate of its full size.
const (
	warmup   = 0.5
	lastRate = 0.05
)

// rate returns the learning rate after some links of the epoch.
func (f *fit) rate(done int) float64 {
	epoch := float64(f.state.epoch) + float64(done)/float64(len(f.order))
	share := epoch / float64(f.o.Epochs)
	if f.o.TimeBudget > 0 {
		share = max(share, min(1, float64(f.elapsed())/float64(f.o.TimeBudget)))
	}
	return f.o.LearningRate * min(1, 0.1+epoch/warmup) * (1 - (1-lastRate)*share)
}

// conclude validates an epoch and writes the checkpoint.
func (f *fit) conclude(loss float64) error {
	e := Epoch{Epoch: f.state.epoch, Loss: loss, Valid: f.valid.measure(f.trainer), Elapsed: f.elapsed()}
	f.state.history = append(f.state.history, e)
	if f.state.best < 0 || f.valid.links == 0 || e.Valid > f.state.history[f.state.best].Valid {
		f.state.best = len(f.state.history) - 1
		f.keep(&f.state.kept)
	}
	f.report(Progress{Epoch: e.Epoch, Share: 1, Loss: loss})
	if f.o.Checkpoint == "" {
		return nil
	}
	return f.save()
}

// tell reports progress, at most about once a second.
func (f *fit) tell(done int, loss float64) {
	if time.Since(f.told) < time.Second {
		return
	}
	done = min(len(f.order), done+f.o.BatchEdges)
	f.report(Progress{Epoch: f.state.epoch + 1, Share: float64(done) / float64(len(f.order)), Loss: loss / float64(done)})
}

// report completes a report and passes it on.
func (f *fit) report(p Progress) {
	f.told = time.Now()
	if f.o.Progress == nil {
		return
	}
	p.Stage, p.Epochs, p.Elapsed, p.Metric = StageTrain, f.o.Epochs, f.elapsed(), f.valid.metric()
	if n := len(f.state.history); n > 0 {
		p.Valid, p.Best = f.state.history[n-1].Valid, f.state.history[f.state.best].Valid
	}
	done := float64(p.Epoch-1) + p.Share
	if spent := time.Since(f.began); done > 0 && f.spent == 0 {
		p.Left = time.Duration(float64(spent) * (float64(f.o.Epochs) - done) / done)
	}
	f.o.Progress(p)
}
