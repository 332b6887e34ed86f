package flashdb

import "time"

// A Result is the answer to one query, with the best hit first.
type Result struct {
	// Source is the key of the source. It is empty for a query by vector.
	Source string
	Hits   []Hit
	Stats  QueryStats
}

// A Hit is one returned node.
type Hit struct {
	Key string
	// Score is the decoder's raw logit, or the similarity in the results of Search. It is always
	// the full decoder's score: an index only decides which nodes are found. It may be infinite,
	// and NaN where a decoder overflows: see Node.Embedding.
	Score float32
	// Probability is the sigmoid of Score. It is zero in the results of Search.
	Probability float32
	// Tags, Attributes and Payload are filled when WithNode is set in the options. They are those
	// that the node has when the query ends.
	Tags       []string
	Attributes Attributes
	Payload    []byte
}

// QueryStats say how a query was answered, what it cost and why it ended.
type QueryStats struct {
	// Plan says in words which plan ran and why.
	Plan string
	// Rounds counts Flashlight rounds. It is 0 for an exact scan.
	Rounds int
	// ListsProbed counts the lists that were visited. RowsVisited counts the rows they hold.
	ListsProbed, RowsVisited int
	// CodesScanned counts the product-quantizer codes that were scanned. A code counts once for
	// each query vector and round.
	CodesScanned int
	// RowsScored counts the rows that the full decoder scored.
	RowsScored int
	// Pool counts the best nodes from which PredictOptions.Diversity or Per chose. It is 0 without
	// them.
	Pool int
	// Stop says why the query ended.
	Stop Stop
	// Short says why there are fewer than k hits. It is empty when there are k.
	Short string
	// Generation is the index generation that was searched, or 0 without one. DeltaRows counts the
	// rows newer than the generation. They are searched too.
	Generation uint64
	DeltaRows  int
	Elapsed    time.Duration
	// IndexDamaged says that the query ran without the index because its file is damaged or
	// missing. Rebuild repairs it.
	IndexDamaged bool
	// UnknownTags are the tags in the filter that no node has, each once.
	UnknownTags []string
	// Trace holds one entry for each round when PredictOptions.Explain is set.
	Trace []Round
	// Verification is set when PredictOptions.Verify is set.
	Verification *Verification
}
