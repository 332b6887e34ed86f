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
// Users and items, for example, are two collections. Items are predicted for a user, and the items
// that the user is already linked to are left out. The main calls are Open, CreateCollection,
// Upsert, PutDecoder, Link and Predict. Rebuild builds the index. StageRelease and Publish replace
// all embeddings, decoders and indexes at once, beside a program that queries.
//
// # What is promised
//
//   - An acknowledged write is durable: it has been synced to the log.
//   - A write is atomic: after a crash, all of a call is there or nothing of it. A Batch makes one
//     write of many calls, on several collections.
//   - Scores are those of the full decoder. An index changes only which nodes are found, never what
//     they score. With PredictOptions.Exact every node is scored.
//   - The recall, which is the share of the exact answer that is found, is 0.98 unless
//     PredictOptions.Recall says otherwise. It is met by plans whose recall was measured: see
//     Collection.Calibrate. QueryStats.Plan names the plan that ran, and why.
//   - A query sees the decoder, nodes, links and tags as of the same write, and of one release. So
//     it sees all of a batch or nothing of it. Nodes that are deleted while it runs are left out.
//   - A Snapshot answers any number of queries as of one point in time.
//   - A write is visible to every query that begins after it was acknowledged, with or without an
//     index.
//   - The index is derived data. While it is missing or damaged, queries score every node. Rebuild
//     makes a new one.
//
// # Concurrency and lifetime
//
// DB and Collection are safe for concurrent use. A directory is open in one DB at a time: another
// Open returns ErrLocked. Other processes can use the open DB through package control, if the
// program serves it. The working directory may change while a DB is open. The directory of the
// database must not be moved. Slices and strings that a call returns are the caller's own. Close
// waits for the calls that are running.
//
// # Packages
//
// Programs use this package and decoder. Package decoder/weights reads weight files, such as those
// of PyTorch and ONNX. Packages train and train/graph train a model on a graph. Package encoder
// embeds nodes that come after training. Package control serves an open database to other
// processes. The exported names of these packages are meant to stay as they are.
//
// Packages flashlight, index, storage and wal are public so that each can be read and measured
// alone. They change with the file formats.
package flashdb
