package flashdb

import "time"

// A Result is the answer of one query, best hit first.
type Result struct {
	// Source is the key asked about; empty for a query by vector.
	Source string
	Hits   []Hit
	Stats  QueryStats
}

// A Hit is one returned node.
type Hit struct {
	Key string
	// Score is the decoder's raw logit (for Search, the similarity). It is exact for what is
	// returned: only membership is approximate. It may be infinite, and NaN where a decoder
	// overflows: see Node.Embedding.
	Score float32
	// Probability is the sigmoid of Score; zero in the results of Search.
	Probability float32
	// Tags and Payload are filled when the options' WithNode is set, with what the node has when
	// the query ends.
	Tags    []string
	Payload []byte
}

// QueryStats say what an answer cost and why it ended.
type QueryStats struct {
	// Plan is the plan that ran, in words and numbers.
	Plan string
	// Rounds counts Flashlight rounds; 0 for an exact scan.
	Rounds int
	// ListsProbed counts the lists visited, RowsVisited the rows they hold.
	ListsProbed, RowsVisited int
	// CodesScanned counts product-quantizer codes, once per round and query.
	CodesScanned int
	// RowsScored counts rows the full decoder scored.
	RowsScored int
	// Stop says why the query ended.
	Stop Stop
	// Short says why fewer than k hits came back; empty when k did.
	Short string
	// Generation is the index generation that served, 0 for none; DeltaRows the rows newer than it
	// that were searched too.
	Generation uint64
	DeltaRows  int
	Elapsed    time.Duration
	// IndexDamaged says that every node was scanned because the index is damaged or its file is
	// missing: a Rebuild repairs it.
	IndexDamaged bool
	// UnknownTags are the tags of the filter that no node has, each once.
	UnknownTags []string
	// Trace holds one entry for each round when PredictOptions.Explain is set.
	Trace []Round
	// Verification is there when PredictOptions.Verify is set.
	Verification *Verification
}
