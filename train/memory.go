package train

import "github.com/flashdb/flashdb/decoder"

// Memory is what a run needs, in bytes, beside the graph and the split.
type Memory struct {
	Features   int64 // fixed features of the nodes
	Parameters int64 // weights and free embeddings, their gradients and moments, the best so far, and what Run returns
	Graph      int64 // links and adjacency
	Working    int64 // batches and activations
	Total      int64
}

// Estimate returns what Run will allocate at most for a graph of this size with the given number of training edges.
func Estimate(g *Graph, trainEdges int, opts Options) Memory {
	o := opts.withDefaults(g, trainEdges)
	return estimate(g, trainEdges, &o)
}

// estimate is Estimate for options that are complete.
func estimate(g *Graph, links int, o *Options) Memory {
	n, d, e := int64(g.Nodes), int64(o.Dim), int64(links)
	var m Memory
	m.Parameters = 4 * n * d * 5 // a free embedding: value, two moments, the best so far; and what Run returns
	weights := headWeights(o, g)
	if o.Encoder == Hops {
		width := int64(newHopLayout(g).width())
		m.Features = 4 * n * width
		weights += (width + d) * int64(o.EncoderHidden)
	}
	m.Parameters += 4 * weights * (5 + lanes)
	m.Graph = e*(12*3+4*4) + n*8*4 // links, those of a fold, their order; two adjacencies
	rows := min(n, int64(o.BatchEdges)*3)
	pairs := int64(o.BatchEdges) * int64(1+o.PerLink)
	m.Working = 4*rows*(2*d+int64(o.EncoderHidden)+d) + pairs*(4*2*d+12+8)
	m.Working += min(n, validLinks*(validNegatives+2)) * 4 * d // a validation
	m.Total = m.Features + m.Parameters + m.Graph + m.Working
	return m
}

// headWeights is the number of weights of the decoder.
func headWeights(o *Options, g *Graph) int64 {
	d := int64(o.Dim)
	switch o.Decoder {
	case decoder.Bilinear:
		return d * d
	case decoder.DistMult:
		return d * int64(max(1, g.Relations))
	case decoder.Dot:
		return 0
	}
	in, sum := 2*d, int64(0)
	for _, out := range o.DecoderHidden {
		sum += (in + 3) * int64(out)
		in = int64(out)
	}
	return sum + in + 1
}
