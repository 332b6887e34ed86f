// Package calibrate measures, on a user's own decoder and rows, which Flashlight plan reaches which
// recall at which cost, so that a query can ask for a recall instead of setting knobs.
//
// # The ground truth
//
// An exact scan of every source costs as many scores as there are rows. Instead the rows that any
// plan scored form a pool for each source, and recall is the share of the pool's k best. What no
// plan found is estimated by a sample of all rows: a row that was sampled with chance p and not
// found stands for 1/p rows, which is unbiased. The chances are high where good rows are likely: a
// decoder scores the centroids of lists, the 2,048 rows of the best lists are all sampled, and a
// row further down with a chance of 2,048 divided by its rank. Of the true 100 best, nine in ten
// are sampled that way on debian, go-stdlib and genes, and what is scored grows with the logarithm
// of the rows. See truth.
//
// # The measurement
//
//	train     thorough searches for sources that measure nothing teach the learned seed its first queries
//	          (flashlight.Seeds), unless the decoder is linear
//	explore   the first few sources, by every plan of a grid: seeds and anchor rules of later rounds at two amounts of work, the
//	          amounts (rounds, rows a round, search sets) under the best of these, and search sets between for those that
//	          did best
//	race      all sources. First one plan for each k that found most, so that something is known whatever the time. Then,
//	          after 8%, 20%, 40% and 70% of the sources, ever fewer plans (successive halving): those on or near the Pareto
//	          frontier of cost and recall, next to .98, .99, .95 and .9. While time is left, the cheapest that may still
//	          reach one of these
//	timing    the plans left and the exact scan, of a part of the rows, timed once more in turns with nothing beside
//
// Plans of different sources run at once, a worker each, on one thread of their own. Recalls do not
// depend on that; plans are compared meanwhile by their work (rounds, rows scored, codes scanned),
// whose costs are fitted to all times measured (see costs), and the costs of a frontier are those
// of the final timing. Costs are seconds of one core. A run ends when its time budget is up, give
// or take the plans under way; only plans that have seen every source that was asked are on a
// frontier.
//
// Recalls depend on the input and on the plans asked. How many plans and sources there is time for
// depends on the machine, so that two runs may keep different plans; with one worker and an
// injected clock a run is deterministic. The constants to tune are in settings.go, the plans to try
// in grid.go.
//
// # The promise
//
// A third of the sources is drawn evenly, the others in proportion to the links they have or are
// expected to have, by two estimates (see Pick), because nobody knows which sources will be asked.
// A frontier lists plans by ascending cost and recall. Its Bound is a lower confidence bound (95%,
// one-sided) of the mean recall over such sources, see LowerBound, less what the sample of rows may
// have missed, and not above the mean of any third. The cheapest plan whose bound reaches the
// target is what a query gets, or one that spares poor sources for little more: see
// Frontier.Choose.
//
// # Use
//
// Run is for one goroutine, and starts those it needs. A Calibration is a plain value; Marshal and
// Unmarshal keep a Set of them, see format.go for the layout.
package calibrate
