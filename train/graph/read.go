package graph

// Read reads one list of edges, or a folder of OGB, into a graph.
func Read(path string, opts *Options) (*Graph, error) {
	if IsOGB(path) {
		return ReadOGB(path, opts)
	}
	b, err := NewBuilder(opts)
	if err != nil {
		return nil, err
	}
	r, err := Open(path, &ReadOptions{Times: b.o.Times})
	if err != nil {
		return nil, err
	}
	if err := b.Add(r, Train); err != nil {
		return nil, err
	}
	return b.Graph()
}
