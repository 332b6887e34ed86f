// Package train makes a link predictor from a graph. It learns embeddings of the nodes and a
// decoder that scores pairs of them. It works in memory, on the CPU.
//
//	split := train.RandomSplit(g, 0.05, 0, 1)
//	m, err := train.Run(ctx, g, split, train.Options{})
//	// m.Embeddings and m.Decoder go into a collection, m.Encoder beside them
//	metrics, err := train.Evaluate(ctx, m.Task(test))
//
// Nodes are numbered from 0. A graph has one kind of node, or two: sources and targets, such as
// users and items. The zero Options are meant to be good for any graph.
//
// # Determinism
//
// The same graph, split and options give the same bits at any number of cores, within one kernel
// class (AVX-512, AVX2, NEON or generic): work is divided into parts that do not depend on the
// cores, and sums are added up in a fixed order. A run that a time budget or a cancelled context
// ends may differ each time.
//
// # Memory
//
// Estimate returns what a run will allocate. Options.MemoryBytes bounds it: Run refuses a graph
// that needs more before it allocates anything that grows with the graph.
//
// # Concurrency
//
// The functions use up to Options.Cores goroutines and wait for all of them before they return.
// Graphs, splits and models are plain data. Many goroutines may read them while none writes to
// them.
package train
