// Package calibrate measures, on a user's own decoder and rows, which Flashlight plan reaches which recall at which
// cost, so that a query can ask for a recall instead of setting knobs.
//
// # The measurement
//
// A run takes sampled sources in order. Each is scanned exactly once, for the largest k; the best k of that is the truth
// for every smaller k. Then it is asked by plans:
//
//	explore   the first few sources, with every plan of the grid: a handful that suffice for many graphs, however little
//	          time there is; the rules (seed, anchors) at two amounts of work; the amounts (rounds, rows a round, probes,
//	          patience) under the best rules, coarse ones before fine ones; then the best of these with a search set that is
//	          all there at once, and does not grow
//	race      all further sources, with the plans that may still be the cheapest that reaches some recall. At 12, 24, 48
//	          ... sources fewer of them go on (successive halving). How many sources there will be is settled first: as
//	          many as take half of the time that is left, and up to 64 as take three quarters of it
//	revive    plans that were dropped, where no plan raced reaches .90, .95, .98 or .99: they are asked about the sources
//	          they have not seen, for the cheapest that does. What the first sources say of hard ones is not enough
//	heat      the plans that are left and the exact scan, timed once more in turns with nothing beside
//
// Exact scans and plans of different sources run at once, a worker each, on one thread of their own. Recalls do not
// depend on that; plans are compared meanwhile by their work (rounds, rows scored, codes scanned), whose costs are fitted
// to all times measured (see work), and the costs of a frontier are those of the heat. Costs are seconds of one core. A run
// ends when its time is up at the latest; what is not measured then was never needed to compare the rest, as all plans of
// a frontier have seen the same sources.
//
// Several sources are not scored in one pass over the rows, as little is to be gained (an estimate, not measured): a scan is bound by the decoder's arithmetic and reads
// less than 1 GB of rows a second.
//
// Recalls depend on the input alone. How many plans and sources there is time for depends on the machine, so that two runs
// may keep different plans; with one worker and an injected clock a run is deterministic.
//
// # The promise
//
// A third of the sources is drawn evenly, the others in proportion to the links they have or are expected to have, by two
// estimates (see Pick), because nobody knows which sources will be asked. A frontier lists plans by ascending cost and recall.
// Its Bound is a lower confidence bound (95%, one-sided) of the mean recall over such sources, see LowerBound, and not above
// the mean of any third. The cheapest plan whose bound reaches the target is what a query gets.
//
// # Use
//
// Run is for one goroutine, and starts those it needs. A Calibration is a plain value; Marshal and Unmarshal keep a Set
// of them, see format.go for the layout.
package calibrate
