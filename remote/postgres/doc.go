// Package postgres keeps the rows of collections in PostgreSQL with pgvector, as a remote.Engine.
//
//	config, err := postgres.FromURL("postgres://app@db.example/links?sslmode=verify-full", os.Getenv)
//	engine, err := postgres.Open(config)
//	db, err := remote.Open(ctx, "papers.remote", engine, nil)
//
// It needs pgvector 0.8 or newer, and a database with the encoding UTF8. A connection creates the
// extension if the database lacks it and the role may.
//
// # What is where
//
// Everything is in one schema, flashdb by default. The table versions has a line for each version
// of each collection: which one is live, and its description with the decoders. Each version has a
// table of its own for its rows, an HNSW index of their vectors and a GIN index of their tags.
//
// # What is atomic
//
// Publish switches all its versions in one transaction, and then drops the tables of the former
// ones. A query names the version it is of, so it reads one table and sees rows of one model. A
// table that is being read is dropped when its readers have ended. Publish waits some seconds for
// them, and leaves the table to the next Stage, Publish or Drop of the collection if they go on. No
// query waits for a drop for longer than two seconds.
//
// A Scan is one statement, so it sees the rows of one moment.
//
// # How a search runs
//
// The vectors of a query go to the server in one round trip, as one transaction. The planner
// chooses between the HNSW index and comparing all rows that match the filter. The index search
// goes on until enough rows have passed the filter and the exclusions (hnsw.iterative_scan of
// pgvector). If it ends with fewer rows than were asked for, all rows are compared. The most that
// hnsw.ef_search may be is 1,000. For a larger Effort, the search takes that many rows from the
// index and returns the nearest.
//
// The index is built by the first Refresh or Publish after the rows, since that is several
// times as fast as to insert rows into it. Until then searches compare every row. The index takes
// embeddings of at most 1,999 dimensions.
//
// # Connections
//
// Get sees every Put only on the server that was written to. So where the address names several
// servers, ask for the primary one: target_session_attrs=read-write. A pooler between must know
// prepared statements.
package postgres
