// Package flashlight finds the rows that a decoder scores highest for a source without scoring them
// all: the algorithm of Wang, Hooi, Liu, Zhao, Guo and Shah, "Flashlight: Scalable Link Prediction
// with Effective Decoders" (LoG 2022, arXiv 2209.10100), Algorithm 1, with several anchors, a
// second query from the best rows of all rounds, and early stops. A decoder bound to a source is a
// function f of a candidate's row. The executor goes round by round:
//
//	queries <- the seed: the gradient of f with every neuron active, the source's row, both, or a learned one (Seeds)
//	for t = 1..Rounds:
//	    rows     <- the PerRound rows of highest inner product with the queries, not excluded   (Searcher)
//	    excluded <- excluded + rows                                                     (X <- X \ N[t] in the paper)
//	    score the rows exactly with the decoder and offer them to the running top-k
//	    queries  <- the mean gradient of f at the best rows (the anchors) of this round, of all rounds, or one of each
//	return the top-k of everything scored
//
// Every score returned is the decoder's own; only membership is approximate. With two queries each
// finds PerRound candidates and their lists are merged alternately, so half of the round comes from
// each and none comes twice.
//
// The searcher looks at a part of the rows, its search set. During a query the set only grows, over
// the first Plan.Growth rounds, up to Plan.Probes: the first queries are the least accurate, so
// that they choose few of the lists. Filters are applied inside the search, and an answer is never
// short because of them: while fewer than k hits are known and rows remain, the search widens until
// it has seen everything (see Executor.Run).
//
// Exact is the scan of all rows that the answers are measured against. Memory is a Searcher over
// rows in memory.
//
// An Executor belongs to one goroutine and reuses its memory. Everything else here is a plain
// value, unless its comment says otherwise.
package flashlight
