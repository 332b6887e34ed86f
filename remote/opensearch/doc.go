// Package opensearch is a remote.Engine over OpenSearch 2.19 with its k-NN plugin, which ships with
// it. It uses the plugin's Lucene engine.
//
//	config, err := opensearch.FromURL("https://node1:9200,https://node2:9200", os.Getenv)
//	engine, err := opensearch.New(config)
//	db, err := remote.Open(ctx, "papers.remote", engine, nil)
//
// # Names
//
// A version is an index: flashdb-<collection>-<version>. Names of indexes are in lower case, so an
// upper-case letter of a collection is written as "_" and the lower-case one, and "_" as "__". The
// alias flashdb_live-<collection> leads to the live version. The alias
// flashdb_to-<collection>-<version> leads to its index; writes go through it, because OpenSearch
// would create a missing index. The alias flashdb_was-<collection> leads to versions that a Publish
// has replaced and not dropped yet. An account needs the rights to create, write, read and delete
// indexes and aliases of the names "flashdb*", and to read the cluster's health.
//
// # Documents
//
// A row is a document of its key, tags, payload, checksum, and its vector twice: as base64 of
// little-endian float32, which is what comes back bit for bit, and as a knn_vector, which is
// indexed and not returned. That one is scaled by a power of two so that a version's rows are 1024
// to 2048 long: a score of OpenSearch is 1/(1+d*d) as float32, which tells distances far below 1
// badly apart. An _id is "k" and the key; it may have 512 bytes, so that of a longer key is "h" and
// a SHA-256 of it. The version's description with its decoders is the document "version" of its
// index, so it appears and disappears with its rows.
//
// # Searches
//
// The vectors of a query are one _msearch. Tags, attributes and excluded keys are applied during
// the search. Effort is ef_search of every shard: three shards keep three times as many candidates.
// The plugin returns at most 10,000 rows of an approximate search, so for more it compares all
// rows. A shard that did not answer is named in Answer.Missing. A Scan is a scroll, which is one
// pass over each shard; search_after would sort all rows again for every page.
//
// # HTTP
//
// The package speaks HTTP by net/http, and not by the official client opensearch-go. The k-NN query
// is raw JSON there too; what that client would add are retries, which remote does around an
// engine, and a second decoding of every answer. What is needed is here in little code: addresses
// in turn, the next one where a connection fails, and errors that are told apart.
//
// A directory cluster beside it starts real nodes for the tests.
package opensearch
