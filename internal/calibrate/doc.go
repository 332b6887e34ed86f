// Package calibrate measures, on a user's own decoder and rows, which Flashlight plan reaches which
// recall at which cost, so that a query can ask for a recall instead of setting knobs. A run goes
// through these steps, which are also the order to read the files in:
//
//	Pick     pick.go     draws sources: a third evenly, the others by their links, known or expected
//	Run      run.go      deals the sources out to workers; a plan is asked by engine.go
//	learn    explore.go  searches thoroughly for other sources, whose gradients become learned seeds
//	truth    truth.go    pools the rows that any plan scored for a source and a sample of all rows
//	explore  explore.go  asks 8 sources by a grid of plans (grid.go)
//	race     race.go     asks ever more sources by ever fewer plans (successive halving)
//	time     timing.go   times plans and the exact scan once more, nothing beside
//	point    result.go   gives each plan its recalls and a lower bound of their mean (statistics.go)
//	Choose   calibration.go  takes the cheapest plan whose bound reaches the recall asked for
//
// Plans are compared by the seconds that their work is estimated to take (cost.go). Those on a
// frontier are compared by the final timing. All costs are seconds on one core. Shares of time and
// other constants are in settings.go.
//
// The Bound of a plan is a lower confidence bound (95%, one-sided) of the mean recall over sources
// drawn as Pick draws them, less what the sample of rows may have missed. It is never above the
// mean recall of the sources of one draw, because nobody knows which sources queries will have.
//
// How many plans and sources there is time for depends on the machine, so two runs may keep
// different plans. With one worker and an injected clock a run is deterministic.
//
// Run is called from one goroutine and starts others. A Calibration is a plain value. Marshal and
// Unmarshal encode a Set of them: format.go describes the layout.
package calibrate
