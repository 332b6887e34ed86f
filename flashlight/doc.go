// Package flashlight finds the rows that a decoder scores highest for a source without scoring all
// rows. It implements Algorithm 1 of Wang, Hooi, Liu, Zhao, Guo and Shah, "Flashlight: Scalable
// Link Prediction with Effective Decoders" (LoG 2022, arXiv 2209.10100), with additions: several
// anchors, a second query vector from the best rows of all rounds, and early stops. A decoder bound
// to a source is a function f of a candidate's row. A query runs in rounds:
//
//	queries <- the seed: the gradient of f with every neuron active, the source's row, both, or a learned one (Seeds)
//	for t = 1..Rounds:
//	    rows     <- the PerRound rows of highest inner product with the queries, not excluded   (Searcher)
//	    excluded <- excluded + rows                                                     (X <- X \ N[t] in the paper)
//	    score the rows exactly with the decoder and offer them to the running top-k
//	    queries  <- the mean gradient of f at the best rows (the anchors) of this round, of all rounds, or one of each
//	return the top-k of everything scored
//
// Every score returned is that of the full decoder. Only which rows are found is approximate. With
// two query vectors each finds PerRound candidates. These are merged alternately, so half of the
// round comes from each, and no row comes twice.
//
// The searcher looks at a part of the rows, its search set. During a query the set only grows, up
// to Plan.Probes, over the first Plan.Growth rounds. It starts small because the first query
// vectors are the least accurate and should choose few of the lists. Filters are applied inside the
// search, and never make an answer short: while there are fewer than k hits and unseen rows remain,
// the search widens (see Executor.Run).
//
// Exact scans all rows. Recall is measured against its answers. Memory is a Searcher over rows in
// memory.
//
// An Executor belongs to one goroutine and reuses its memory. All other types are plain values,
// unless their comments say otherwise.
package flashlight
