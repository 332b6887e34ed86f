package train

import "github.com/flashdb/flashdb/decoder"

// Memory is what a run needs in bytes, without the graph and the split.
type Memory struct {
	Features   int64 // fixed features of the nodes
	Parameters int64 // weights and free embeddings, their gradients and moments, the best so far, and what Run returns
	Graph      int64 // links and adjacency
	Working    int64 // batches and activations
	Total      int64
}

// Estimate returns the most that Run will allocate for a graph of this size and a split of its
// edges. It reads only the lengths of the split.
func Estimate(g *Graph, split Split, opts Options) Memory {
	o := opts.withDefaults(g, len(split.Train))
	return estimate(g, len(split.Train), &split, &o)
}

// estimate is Estimate for so many different training links, and options that are complete.
func estimate(g *Graph, links int, split *Split, o *Options) Memory {
	n, d, e := int64(g.Nodes), int64(o.Dim), int64(links)
	hidden, pairs := int64(o.EncoderHidden), int64(o.BatchEdges)*int64(1+o.PerLink)
	rows, row, free := min(n, 3*int64(o.BatchEdges)), 2*d, d // of a batch; values of each; of a free embedding
	if o.Negatives == Pairs {
		rows = min(n, (3+int64(o.PerLink))*int64(o.BatchEdges))
	}
	if o.sharesNegatives() {
		pairs, rows = int64(o.BatchEdges), min(n, int64(2*o.BatchEdges+o.PerLink))
	}
	weights := headWeights(o, g)
	var m Memory
	switch o.Encoder {
	case Hops:
		layout := newHopLayout(g, o.Dim)
		width, subspace := int64(layout.width()), int64(layout.subspace)
		m.Features = 4 * n * (width + 1 + subspace) // and the rates of free embeddings, and the spectral subspace
		weights += (width+d)*hidden + d*subspace
		row += hidden + d
	case GCN, SAGE:
		layers, widest := int64(o.EncoderLayers), max(hidden, d)
		rows, free = n, hidden
		row += (2*layers + 4) * widest // inputs of the layers, means of neighbours, gradients
		weights += layers*2*widest*widest + hidden*int64(g.FeatureDim)
	case Node2Vec:
		pairs = max(pairs, (1+walkNegatives)*2*walkPairs)
	}
	const copies = 4 // the value, two moments, and the best so far
	m.Parameters = 4*(n*free*copies+n*d) + 4*weights*(copies+1+lanes)
	m.Graph = e*(3*12+4*4) + n*8*6 // links, those of a fold, their order; up to three adjacencies
	m.Working = 4*rows*row + pairs*(4*2*d+12+8)
	if negatives := int64(min(o.PerLink, g.Nodes)); o.sharesNegatives() {
		// Rows, packed twice, and gradients; those of each lane; the logits of each core.
		m.Working += 4 * negatives * ((4+lanes)*d + int64(min(o.Cores, lanes))*chunkPairs)
		m.Graph += 4*n + 4*2*e // places of nodes, and the reverse of links in the adjacency
	}
	valid := int64(split.validPairs())
	m.Working += min(n, 2*valid)*4*d + valid*(12+8+4) // embeddings, pairs, their places and logits of a validation
	m.Total = m.Features + m.Parameters + m.Graph + m.Working
	return m
}

// headWeights is the number of weights of the decoder.
func headWeights(o *Options, g *Graph) int64 {
	d := int64(o.Dim)
	switch o.Decoder {
	case decoder.Bilinear:
		return d * d
	case decoder.DistMult, decoder.ComplEx:
		return d * int64(max(1, g.Relations))
	case decoder.Dot:
		return 0
	}
	if o.Decoder == decoder.MoL {
		l := int64(o.Components) * int64(o.Components)
		sides := 2 * (d + 1) * int64(o.Components) * int64(componentWidth(o.Dim))
		return sides + 2*layerWeights(d, l, o.DecoderHidden) + layerWeights(l, l, o.DecoderHidden)
	}
	return layerWeights(2*d, 1, o.DecoderHidden)
}

// layerWeights is the most weights that a network with these hidden layers has.
func layerWeights(in, out int64, hidden []int) (sum int64) {
	for _, width := range hidden {
		sum += (in + 3) * int64(width)
		in = int64(width)
	}
	return sum + (in+1)*out
}
