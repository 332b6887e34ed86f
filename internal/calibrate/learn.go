package calibrate

import (
	"context"
	"errors"

	"github.com/flashdb/flashdb/flashlight"
)

// learn searches thoroughly for the training sources, as many as there is time for, and makes seeds
// of what it finds. A decoder without a gradient to learn from has none.
func (r *run) learn(ctx context.Context) error {
	bound := r.Decoder.Bind(nil, r.Sources[0].Vector)
	if bound.Linear() || len(r.Training) == 0 {
		return nil
	}
	all := r.Training[:min(len(r.Training), TrainSources)]
	learned := make([]flashlight.Prototype, len(all))
	n, err := r.each(ctx, 0, len(all), r.share(trainShare), func(w *worker, i int) (err error) {
		q := w.query(&all[i], r.Ks[len(r.Ks)-1])
		q.Plan = flashlight.LearnPlan(r.Rows)
		w.engine.Search.Reset()
		learned[i], err = w.executor.Learn(ctx, all[i].ID, &q, w.engine.Search, w.engine.Rows)
		return err
	})
	if errors.Is(err, flashlight.ErrNotSeparable) {
		return nil
	}
	if err == nil {
		if r.seeds = flashlight.NewSeeds(r.Decoder.Dim(), learned[:n]); r.seeds.Len() == 0 {
			r.seeds = nil
		}
	}
	return err
}
