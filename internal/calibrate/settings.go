package calibrate

// What a run tries, and how it spends its time. A share is one of Input.Time. The values were
// chosen on debian, go-stdlib and ddi. worstMisses and the shares of time were also tried on genes
// and on copies of it with 3M rows. rareTail, and the order of the race, were chosen on genes.
const (
	// Sources: see Pick.
	poolSources = 20_000 // in the pool; a hundredth of the genes has 28% of the links, and some of them must be in it
	sourceBytes = 512    // what a source of the pool takes beside its row: mostly its links
	weighRows   = 64     // rows that each source of the pool is scored against
	mostLogit   = 10     // limit of a logit in a weight, so that one row does not dominate it

	// Learned seeds.
	TrainSources = 384  // most sources to learn from
	startTries   = 8    // sources whose searches show whether the ones seed finds the best rows
	startFound   = 0.9  // if it finds a smaller share of them, searches start from sampled rows
	startRows    = 50   // how many sampled rows they start from
	trainShare   = 0.12 // share of the time after which learning ends

	// Ground truth: see truth.
	certainRows   = 2048 // rows of the best lists that are always sampled; further down, the chance is this divided by the rank
	fewestCertain = 512  // certainRows is reduced to this at least
	sampleShare   = 0.15 // share of the time that samples may take
	manyLists     = 4096 // of more lists, only so many are ranked one by one, if neighbours are similar
	runLists      = 16   // neighbouring lists in a run
	stripRows     = 64   // rows of a list that are sampled together
	blockRows     = 512  // rows that are gathered and scored at a time, at least
	tieTolerance  = 1e-5 // relative difference up to which a hit ties with the k-th best, and counts as found
	scoreFloor    = 0.1  // smallest score that tieTolerance is relative to

	// Exploring: the grid of plans, run for the first sources.
	exploreSources = 8     // number of first sources
	exploreShare   = 0.25  // share of the time after which exploring ends, learning included
	exploreChunk   = 12    // plans between two looks at the clock
	leastProbed    = 1000  // rows in the smallest search set
	ladderStep     = 4     // factor from one search set to the next, up to all rows
	recallStep     = 0.005 // seeds and anchor rules whose summed recalls differ by less count as equally good
	stopTail       = 0.03  // flashlight.Plan.Tail of plans that stop early
	rareTail       = 0.01  // the same of some plans between those of the grid
	roundsToTail   = 1.3   // rounds that such a plan is expected to run
	costliest      = 0.08  // a plan is left out if all its sources would take more than this share of the time of all workers
	ample          = 10    // a plan is left out if it costs so many times as much as one that found everything

	// Successive halving: see race.
	safeShare = 0.75 // share of the time after which the safe plans end
	raceShare = 0.92 // share of the time after which the race ends; the rest is for the final timing

	// Final timing.
	timingSources = 16
	timedRows     = 32768 // rows of an exact scan that are timed, up to the end of a block

	// Bounds: see LowerBound, missMargin, tailBound and relationBound.
	unseenGap       = 0.05 // the unseen source lies at least so far below the mean
	unseenRows      = 3    // misses that a sample without any is compatible with: the 95% limit of Poisson's distribution
	tailMisses      = 4    // at the 5th percentile, so many times as much may be missing as the recall allows
	worstMisses     = 5    // the same for the worst source
	wellServed      = 0.95 // for a higher recall, the worst source must find this much
	relationMisses  = 2    // the same for the mean over the sources of a relation; measured, see docs/measurements.md
	relationSources = 4    // a relation with fewer sources is not judged; measured likewise
	evenPrice       = 1.5  // a plan that these limits exclude is replaced by one that costs at most so many times as much
)

// targets are the recalls that plans are sought for. The first is the default recall of queries.
var targets = []float64{.98, .99, .95, .9}
