// Package calibrate measures, on a user's own decoder and rows, which Flashlight plan reaches which recall at which
// cost, so that a query can ask for a recall instead of setting knobs.
//
// # The measurement
//
// A run takes sampled sources in order. Each is scanned exactly once, for the largest k; the best k of that is the truth
// for every smaller k. Then it is asked by plans:
//
//	explore   the first few sources, with every plan of the grid: first the rules (seed, anchors) at two amounts of work,
//	          then the amounts (rounds, rows a round, probes) under the best rules, coarse ones before fine ones
//	race      all further sources, with the plans that may still be the cheapest that reaches some recall. At 12, 24, 48
//	          ... sources fewer of them go on (successive halving), so that sources, not plans, take up the time
//
// Exact scan and plans alternate source by source, each on one thread of its own, so that the load of the machine falls
// on both alike and their ratio stays true. Costs are seconds of one core. A run ends when the sources do or when its time
// is up, whichever comes first; what is not measured then was never needed to compare the rest, as all plans of a frontier
// have seen the same sources.
//
// Recalls depend on the input alone. Costs are measured, and decide which plans are dropped, so that two runs may keep
// different ones; with one worker and an injected clock a run is deterministic.
//
// # The promise
//
// Half of the sources are drawn evenly, half in proportion to the links that the decoder expects them to have (see Pick),
// because nobody knows which sources will be asked. A frontier lists plans by ascending cost and recall. Its Bound is a
// lower confidence bound (95%, one-sided) of the mean recall over such sources, see LowerBound, and not above the mean of
// either half. The cheapest plan whose bound reaches the target is what a query gets.
//
// # Use
//
// Run is for one goroutine, and starts those it needs. A Calibration is a plain value; Marshal and Unmarshal keep a Set
// of them, see format.go for the layout.
package calibrate
