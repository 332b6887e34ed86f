package calibrate

// What a run tries, and how it spends its time. Shares are of Input.Time unless said otherwise. The
// values were chosen on debian, go-stdlib and ddi; worstMisses, and how the time is dealt out, on
// genes and on copies of it with 3M rows as well.
const (
	// Sources: see Pick.
	poolSources = 20_000 // looked at: a hundredth of the genes has 28% of the links, and must have a chance to be drawn
	weighRows   = 64     // that each of these is scored against
	mostLogit   = 10     // so that no single row decides about a weight

	// Learned seeds.
	TrainSources = 384  // searched thoroughly for them, at most,
	startTries   = 8    // of them are first searched for from the ones seed;
	startFound   = 0.9  // where that finds a smaller share of the best rows known,
	startRows    = 50   // all begin at so many rows of a sample
	trainShare   = 0.12 // they may take so much of the time

	// Ground truth: see truth.
	certainRows   = 2048 // of the lists that rank highest are all sampled; further down the chance is this divided by the rank
	sampleShare   = 0.15 // of the time may go to samples; the 2048 become fewer if need be, though no fewer than
	fewestCertain = 512
	manyLists     = 4096 // of more, if neighbours are alike, only so many in the runs that rank highest are ranked one by one
	runLists      = 16   // neighbouring lists of a run
	stripRows     = 64   // of a list are sampled together
	blockRows     = 512  // gathered and scored at a time, at least
	tieTolerance  = 1e-5 // relative: a hit so far below the k-th score still counts as found; nodes that tie are equally right
	scoreFloor    = 0.1  // what scores are taken relative to at least

	// Exploring: the grid of plans, asked about the first sources.
	exploreSources = 8
	exploreShare   = 0.25  // over when this much of the time is, training included
	exploreChunk   = 12    // plans between two looks at the clock
	leastProbed    = 1000  // rows of the smallest search set
	ladderStep     = 4     // each next search set is so many times as large, up to every list
	recallStep     = 0.005 // seeds and anchor rules whose plans differ by less in recall, all together, are as good as each other
	stopTail       = 0.03  // flashlight.Plan.Tail of plans that stop early,
	rareTail       = 0.01  // of some between those of the grid,
	roundsToTail   = 1.3   // and how many rounds they are expected to run
	costliest      = 0.08  // left out is a plan that would take more than this of the time of all cores for all sources,
	ample          = 10    // and one that costs so many times what another costs that found everything

	// Successive halving: all sources, ever fewer plans.
	safeShare = 0.75 // over when this much is: the safe plans have been asked about all sources
	raceShare = 0.92 // over when this much is, so that the final timing has the rest

	// Final timing.
	timingSources = 16
	timedRows     = 32768 // of an exact scan, up to the end of a block of them

	// What is promised: see LowerBound, missMargin, tailBound and relationBound.
	unseenGap       = 0.05 // how far below the mean the unseen source lies at least
	unseenRows      = 3    // that a sample may have missed which misses none: Poisson's 95% limit
	tailMisses      = 4    // times as much as a recall allows may be missing at the 5th percentile,
	worstMisses     = 5    // so many times at the worst source,
	relationMisses  = 2    // and so many times on average over the sources of a relation,
	relationSources = 8    // if there are so many of them; otherwise a plan gives way to one that does better there
	evenPrice       = 1.5  // and costs at most so many times as much
)

// targets are the recalls that plans are sought for, first the one that queries ask for when
// nothing else is said.
var targets = []float64{.98, .99, .95, .9}
