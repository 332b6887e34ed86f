package flashdb

import (
	"slices"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/storage"
)

// names is the memory that a query reuses for the keys of its hits.
type names struct {
	bytes []byte // the keys that the generation holds, one after the other
	ends  []int  // where the key of each hit ends in bytes; a hit without a key adds nothing
}

// named returns the hits of the result for q.hits. It leaves out nodes that were deleted since they
// were found.
func (q *query) named(withNode, probability bool) ([]Hit, error) {
	hits := make([]Hit, len(q.hits))
	for i, h := range q.hits {
		hits[i].Score = h.Score
		if probability {
			hits[i].Probability = decoder.Probability(h.Score)
		}
	}
	missing := len(hits)
	if !withNode {
		missing = q.nameFromIndex(hits)
	}
	if missing > 0 {
		if err := q.nameFromStore(hits, withNode); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(hits, func(h Hit) bool { return h.Key == "" }), nil
}

// nameFromIndex sets the keys of the live hits that the pinned generation holds, and returns how
// many other live hits there are. The key of an id never changes, so only liveness comes from the
// store. All keys are parts of one string: that is one allocation instead of one for each hit.
func (q *query) nameFromIndex(hits []Hit) (missing int) {
	gen, live := q.view.pinned.gen, q.c.liveness()
	n := &q.names
	n.bytes, n.ends = n.bytes[:0], n.ends[:0]
	for _, h := range q.hits {
		if live.Has(h.ID) {
			var key []byte
			if gen != nil {
				key, _ = gen.Key(h.ID)
			}
			if len(key) == 0 {
				missing++
			}
			n.bytes = append(n.bytes, key...)
		}
		n.ends = append(n.ends, len(n.bytes))
	}
	all, begin := string(n.bytes), 0
	for i, end := range n.ends {
		hits[i].Key, begin = all[begin:end], end
	}
	return missing
}

// nameFromStore fills in from the store what the hits lack: keys, or with withNode also tags,
// attributes and payloads.
func (q *query) nameFromStore(hits []Hit, withNode bool) error {
	uid := q.c.uid
	return q.c.view(func(v *storage.View) error {
		for i, h := range q.hits {
			switch {
			case withNode:
				n, _ := v.Node(uid, h.ID)
				hits[i].Key, hits[i].Tags, hits[i].Payload = n.Key, n.Tags, n.Payload
				hits[i].Attributes = anyOf(v.NodeAttributes(uid, h.ID))
			case hits[i].Key == "":
				hits[i].Key, _ = v.Key(uid, h.ID)
			}
		}
		return nil
	})
}
