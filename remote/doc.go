// Package remote predicts links over an engine that holds the embeddings on other machines, such as
// OpenSearch or PostgreSQL with pgvector. It runs the same rounds, seeds and decoders as an
// embedded flashdb, and every score it returns is exact: the engine only finds rows, and the
// decoder scores them here.
//
//	db, err := remote.Open(ctx, "papers.remote", engine, nil)
//	papers, err := db.Collection(ctx, "papers")
//	res, err := papers.Predict(ctx, "10.1145/3580305", 10, nil)
//
// # What is where
//
// The engine holds versions of collections. A version is the rows of one trained model and the
// decoders that were trained with them. So a new model replaces rows and decoders in one step, and
// a query never scores rows of one model by the decoder of another: it names the version it is of
// in every call.
//
// A small flashdb directory beside the program holds what belongs to no version, the known links,
// and what is derived from one, its calibration and learned seeds. It holds no embeddings.
//
// # How a query runs
//
// A round is one call of the engine. It sends the query vectors of the round and the keys to leave
// out, and gets rows with their embeddings back. Engines search by Euclidean distance, so each row
// has one more dimension that makes all rows equally long: the nearest rows are then those of the
// highest inner product (Bachrach et al., "Speeding up the Xbox recommender system using a
// Euclidean transformation for inner-product spaces", RecSys 2014). A row carries a checksum of its
// version, key and vector, which is verified before the row is scored.
//
// # Engines
//
// [Engine] is what an engine must do. Packages opensearch and postgres implement it, package memory
// does so for tests, and package conformance holds the tests that every engine must pass.
package remote
