// Package flashdb is an embedded vector database for learned link prediction.
//
// A program keeps node embeddings and trained decoder weights in it and asks which k nodes score
// highest against a source under that decoder. The decoder may be neural, such as an MLP over the
// element-wise product of two embeddings; flashdb answers from an on-disk IVF-PQ index by the
// Flashlight algorithm (Wang et al., "Flashlight: Scalable Link Prediction with Effective
// Decoders", LoG 2022, arXiv 2209.10100) instead of scoring every node.
//
// A DB is a directory. It holds collections. A collection holds nodes, each with a key, an
// embedding, tags and a payload. It also holds known links between nodes, and decoders by name.
// Users and items are two collections: items are predicted for a user, and a user's links to items
// are left out. Open, CreateCollection, Upsert, PutDecoder, Link and Predict are the main path;
// Rebuild builds the index.
//
// # What is promised
//
//   - An acknowledged write is durable: it has been synced to the log.
//   - A write is atomic: each call happens wholly or not at all, also across a crash. A Batch makes
//     many calls, on several collections, one write.
//   - Scores are those of the full decoder. An index changes only which nodes are found, never what
//     they score. With PredictOptions.Exact every node is scored.
//   - The share of the exact answer that is found, 0.98 unless PredictOptions.Recall says
//     otherwise, is one that was measured: see Collection.Calibrate. QueryStats.Plan says how it is
//     met.
//   - A query sees the decoder, nodes, links and tags as of the same write, so it sees all of a
//     batch or nothing. Nodes that are deleted while it runs are left out.
//   - A write is visible to every query that begins after it was acknowledged, with or without an
//     index.
//   - The index is derived data: when it is missing or damaged, queries scan exactly until the next
//     Rebuild.
//
// # Concurrency and lifetime
//
// DB and Collection are safe for concurrent use. One DB has a directory open at a time. Another
// Open gets ErrLocked; it can use the first DB by package control, if that is served. Open holds
// the directory: the working directory may change meanwhile, and the directory must stay where it
// is. Slices and strings that a call returns are the caller's own. Close waits for the calls under
// way.
//
// # Packages
//
// Programs use this package and decoder; decoder/weights, which reads the files of PyTorch; train
// and train/graph, which make a model of a graph; encoder, which embeds later nodes with such a
// model; and control, which serves an open database to other processes. These are meant to stay as
// they are. Packages flashlight, index, storage and wal are public so that they can be read and
// measured alone; they change with the formats.
package flashdb
