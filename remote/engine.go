package remote

import (
	"context"
	"errors"

	"github.com/flashdb/flashdb/internal/filter"
)

// Errors that an engine returns, besides flashdb.ErrNotFound for a collection or version that it
// does not hold, and errors of its own. They are matched with errors.Is.
var (
	// ErrUnavailable is returned when the engine, or the part of it that was needed, did not answer
	// or answered that it is overloaded. The call may be repeated.
	ErrUnavailable = errors.New("engine is not available")
	// ErrForeign is returned for something of a collection's name that this package has not made,
	// or that was changed by other means: another schema, or rows with a wrong checksum. Nothing in
	// it is scored or changed.
	ErrForeign = errors.New("not made by flashdb, or changed since")
)

// A Name names one version of a collection in an engine.
type Name struct {
	Collection string // as flashdb allows: letters, digits, '.', '_' and '-', at most 64
	Version    string // 16 lower-case hexadecimal digits
}

// A Version describes the rows of one model and holds its decoders. An engine stores it as one
// document and does not look inside.
type Version struct {
	ID        string            `json:"id"`
	Dim       int               `json:"dim"`       // of an embedding
	Normalize bool              `json:"normalize"` // embeddings have length 1: see flashdb.Schema
	Norm      float32           `json:"norm"`      // Euclidean length of every row with its additional dimension
	Decoders  map[string][]byte `json:"decoders"`  // by name, as decoder.Marshal encodes them
	// Attributes are the types of the rows' attributes by name: number, string, bool or time.
	Attributes map[string]string `json:"attributes,omitempty"`
	// Sources are the versions of other collections that were trained with this one, by collection,
	// such as that of users for items.
	Sources map[string]string `json:"sources,omitempty"`
}

// A Row is one node in an engine.
type Row struct {
	Key string // 1 to 1024 bytes of UTF-8
	// Vector is the embedding with one more dimension: Dim + 1 finite values. An engine returns the
	// very float32 values that were put.
	Vector  []float32
	Tags    []string // also what stands for attributes; no zero bytes
	Payload []byte
	// Sum is a checksum of version, key and vector. An engine stores and returns it, and does not
	// verify it.
	Sum uint32
}

// A Filter is an expression of tags. A leaf has a Tag, or a Span: the row has a tag from Span.From
// on and before Span.To, in the order of bytes. An inner node has an Op and Args.
type Filter = filter.Node

// The operators of a Filter.
const (
	And = filter.And
	Or  = filter.Or
	Not = filter.Not // of one argument
)

// A Query asks a version for rows.
type Query struct {
	Vectors [][]float32 // 1 to 16 vectors of Dim + 1 finite values
	N       int         // rows wanted for each vector
	// Effort is the number of candidates that an approximate search keeps, at least N: ef of HNSW.
	// An engine that allows less takes the most it allows.
	Effort  int
	Exact   bool     // compare every row, and ignore Effort
	Exclude []string // keys not to return; unknown ones are ignored
	Filter  *Filter  // if set, only rows whose tags match
}

// An Answer is what a Query found.
type Answer struct {
	// Rows are the rows nearest to each query vector by Euclidean distance, nearest first, without
	// payloads. There are fewer than N if no more match, or if an approximate search found no more.
	Rows [][]Row
	// Missing says in words which part of the rows did not answer, and is empty if all did.
	Missing string
}

// An Engine stores versions of collections and searches them. It is safe for concurrent use.
//
// Every call may be repeated after an error, and then does what it would have done at first. A call
// for a version that the engine does not hold returns flashdb.ErrNotFound.
type Engine interface {
	// Live returns the version of a collection that is served, or flashdb.ErrNotFound.
	Live(ctx context.Context, collection string) (Version, error)
	// Versions returns the names of all versions of a collection, the live one first.
	Versions(ctx context.Context, collection string) ([]Name, error)
	// Stage creates the empty version v of a collection. It is not live. If the engine holds the
	// version already, Stage replaces its description and keeps its rows.
	Stage(ctx context.Context, collection string, v Version) error
	// Publish makes versions the live ones of their collections, all in one step as far as the
	// engine can, and then drops the versions that were live before. Rows put before are found by
	// every Search that begins after Publish returned.
	Publish(ctx context.Context, versions ...Name) error
	// Drop removes a version with its rows. Dropping what is not there is no error.
	Drop(ctx context.Context, of Name) error

	// Put stores rows under their keys and replaces rows stored there before.
	Put(ctx context.Context, in Name, rows []Row) error
	// Delete removes the rows under these keys, and returns how many there were.
	Delete(ctx context.Context, in Name, keys []string) (int, error)
	// Refresh returns once Search, Scan and Count see every row put or deleted before.
	Refresh(ctx context.Context, of Name) error

	// Get returns the rows under these keys, with their payloads, in any order. Unknown keys are
	// left out. It sees every Put that has returned.
	Get(ctx context.Context, in Name, keys []string) ([]Row, error)
	// Search returns the nearest rows.
	Search(ctx context.Context, in Name, q *Query) (Answer, error)
	// Scan calls fn with every row once, without payloads, some at a time and in any order. It
	// stops with fn's error. The rows are valid until fn returns.
	Scan(ctx context.Context, in Name, f *Filter, fn func([]Row) error) error
	// Count returns the number of rows.
	Count(ctx context.Context, in Name) (int, error)

	// Close releases connections.
	Close() error
}
