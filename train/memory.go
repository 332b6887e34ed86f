package train

// Memory is what a run needs, in bytes, beside the graph and the split.
type Memory struct {
	Features   int64 // fixed features of the nodes
	Parameters int64 // weights and free embeddings, their gradients and the two moments of Adam, and the best so far
	Graph      int64 // adjacency
	Working    int64 // batches and activations
	Total      int64
}

// Estimate returns what Run will allocate at most for a graph of this size with the given number of training edges.
func Estimate(g *Graph, trainEdges int, opts Options) Memory {
	return Memory{}
}
