// Package graph reads graphs from files, for package train: lists of edges by key or by number,
// OGB's folders, features of nodes.
//
//	g, err := graph.Read("likes.tsv", &graph.Options{TwoKinds: true})
//	m, err := train.Run(ctx, &g.Graph, split, train.Options{})   // row i of m.Embeddings is the node g.Keys[i]
//
// # Lists of edges
//
// A line or row is an edge: its source, its target, and perhaps a relation and a time.
//
//	.tsv .csv .txt ...   text; the separator of the columns is detected: tabs, commas, semicolons, "::" or blanks
//	.jsonl .ndjson       one object per line, with the fields source and target
//	.npy .npz .pt        integers: 2 x m as edge_index of PyG, or m x 2; with 3 the second is the relation
//	.npz .pt             the same, or the arrays source_node and target_node of ogbl-citation2
//	a folder             a data set of OGB: raw/edge.csv.gz, and split/NAME/train.pt, valid.pt and test.pt
//
// Each file may be compressed with zstd or gzip. A table of any other kind, such as Parquet, is
// read by [FromTable]. Leading lines of text that begin with # or % are comments. The first line is
// a header if it names a source and a target, or if it has no number in a column where the next
// lines have numbers. Columns are found by the names of the header, or are the first two; of three
// columns without a header the middle one is the relation where it has few different values.
// [Layout] says what was detected, and [Options] overrule it.
//
// The negatives of each edge, which a model is measured by, are read by [OpenLists].
//
// # What is cleaned
//
// Self loops and repeats are left out and counted. If edges have no direction, an edge and its
// reverse are one: see [Direction]. Held-out edges are left out and counted if they are training
// edges too, or if one of their nodes has no training edge. Any other fault is an error of one line
// that says where.
//
// # Untrusted bytes
//
// Memory use is in proportion to what is read. Lines have at most 4 MiB, keys at most 1024 bytes,
// and Options.MemoryBytes bounds the whole graph. Nothing in a .pt is executed. Functions and types
// may be used by one goroutine at a time.
package graph
