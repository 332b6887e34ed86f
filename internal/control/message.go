package control

import "fmt"

// The names of the calls, with their requests and what they answer. O is the
// options struct of the root package, which this package does not know.
const (
	CallOwner       = "owner"       // None -> Owner
	CallStats       = "stats"       // None -> flashdb.Stats
	CallMetrics     = "metrics"     // None -> flashdb.Metrics
	CallCheck       = "check"       // None -> Findings
	CallCheckpoint  = "checkpoint"  // None -> None
	CallCompact     = "compact"     // Compact[flashdb.CompactOptions] -> progress Progress, flashdb.CompactResult
	CallBackup      = "backup"      // Backup[flashdb.BackupOptions] -> items Chunk, progress Progress, flashdb.BackupResult
	CallCollections = "collections" // None -> Names
	CallCollection  = "collection"  // In -> flashdb.Schema
	CallCreate      = "create"      // Create[flashdb.Schema] -> None
	CallDrop        = "drop"        // In -> None

	CallUpsert  = "upsert"  // Upsert -> None
	CallGet     = "get"     // Nodes -> items Node, in the order of the keys
	CallDelete  = "delete"  // Nodes -> Deleted
	CallLink    = "link"    // Link -> None
	CallUnlink  = "unlink"  // Link -> Unlinked
	CallLinked  = "linked"  // Nodes of one key -> Names
	CallKeys    = "keys"    // In -> items IDs, in id order
	CallKeysOf  = "keysof"  // IDs without keys -> IDs of those that exist
	CallPrefix  = "prefix"  // Prefix -> Names
	CallMeta    = "meta"    // Meta -> Meta
	CallSetMeta = "setmeta" // Meta -> None

	CallDecoders    = "decoders"    // In -> Names
	CallDecoder     = "decoder"     // Decoder -> Decoder
	CallPutDecoder  = "putdecoder"  // Decoder -> None
	CallDropDecoder = "dropdecoder" // Decoder -> None

	CallPredict = "predict" // Predict[flashdb.PredictOptions] -> items Answer[flashdb.Result]
	CallScore   = "score"   // Score -> Hits of flashdb.Hit
	CallSearch  = "search"  // Search[flashdb.SearchOptions] -> flashdb.Result
	CallRebuild = "rebuild" // Rebuild[flashdb.RebuildOptions] -> progress Progress, flashdb.RebuildResult

	CallCalibrations = "calibrations" // In -> Calibrations[flashdb.Calibration], those stored
	CallLists        = "lists"        // In -> Lists
	CallCalibrate    = "calibrate"    // Calibrate[flashdb.CalibrateOptions] -> progress Progress, Calibrations of flashdb.Calibration
)

// None is an empty request or result.
type None struct{}

// Owner is the process that has the database open.
type Owner struct {
	PID int `json:"pid"`
}

// Compact asks for a compaction.
type Compact[O any] struct {
	Options *O `json:"options,omitempty"`
}

// Backup asks for the stream of a backup.
type Backup[O any] struct {
	Options *O `json:"options,omitempty"`
}

// A Chunk is the next bytes of a stream.
type Chunk struct {
	Bytes []byte `json:"bytes"`
}

// Findings are what a check found wrong, and what lies in the directory without
// being the database's, one line each.
type Findings struct {
	Findings []string `json:"findings"`
	Strays   []string `json:"strays"`
}

// Names are names or keys.
type Names struct {
	Names []string `json:"names"`
}

// In names the collection that a request is about; it is part of each of them.
type In struct {
	Collection string `json:"collection,omitempty"`
}

// Where returns the name of the collection.
func (in In) Where() string { return in.Collection }

// Create asks for a new collection.
type Create[Schema any] struct {
	Collection string `json:"collection"`
	Schema     Schema `json:"schema"`
}

// A Node is a node of a collection.
type Node struct {
	Key       string   `json:"key"`
	Embedding Vector   `json:"embedding"`
	Tags      []string `json:"tags,omitempty"`
	Payload   []byte   `json:"payload,omitempty"`
}

// Upsert stores nodes in one atomic act.
type Upsert struct {
	In
	Nodes []Node `json:"nodes"`
}

// Nodes name nodes by their keys.
type Nodes struct {
	In
	Keys []string `json:"keys"`
}

// Prefix asks for the first Limit keys that begin with Prefix.
type Prefix struct {
	In
	Prefix string `json:"prefix"`
	Limit  int    `json:"limit"`
}

// Lists are the sizes of the inverted lists.
type Lists struct {
	Sizes []int `json:"sizes"`
}

// Deleted says how many nodes were deleted.
type Deleted struct {
	Nodes int `json:"nodes"`
}

// Link records or forgets known links in one atomic act, Sources[i] to Targets[i].
type Link struct {
	In
	Sources []string `json:"sources"`
	Targets []string `json:"targets"`
}

// Unlinked says how many links were forgotten.
type Unlinked struct {
	Links int `json:"links"`
}

// IDs pairs ids with keys, IDs[i] with Keys[i].
type IDs struct {
	In
	IDs  []uint32 `json:"ids"`
	Keys []string `json:"keys,omitempty"`
}

// Each calls fn for every pair.
func (p IDs) Each(fn func(id uint32, key string) error) error {
	if len(p.IDs) != len(p.Keys) {
		return fmt.Errorf("the owner sent %d ids and %d keys", len(p.IDs), len(p.Keys))
	}
	for i, id := range p.IDs {
		if err := fn(id, p.Keys[i]); err != nil {
			return err
		}
	}
	return nil
}

// Meta is a string kept beside a collection.
type Meta struct {
	In
	Name  string `json:"name,omitempty"`
	Value string `json:"value"`
}

// A Decoder is a stored decoder; Blob is that of decoder.Marshal.
type Decoder struct {
	In
	Name string `json:"name,omitempty"`
	Blob []byte `json:"blob,omitempty"`
}

// Predict asks about nodes by key, or about one source by its vector.
type Predict[O any] struct {
	In
	Keys    []string `json:"keys,omitempty"`
	Vector  Vector   `json:"vector,omitempty"`
	K       int      `json:"k"`
	Options *O       `json:"options,omitempty"`
}

// An Answer is that to one of a batch of questions, or why there is none.
type Answer[Result any] struct {
	Result Result `json:"result"`
	Error  *Error `json:"error,omitempty"`
}

// Score asks for the decoder's score of candidates against a source.
type Score struct {
	In
	Decoder    string   `json:"decoder,omitempty"`
	Source     string   `json:"source"`
	Candidates []string `json:"candidates"`
}

// Hits are scored nodes.
type Hits[Hit any] struct {
	Hits []Hit `json:"hits"`
}

// Search asks for the nodes nearest to a vector.
type Search[O any] struct {
	In
	Vector  Vector `json:"vector"`
	K       int    `json:"k"`
	Options *O     `json:"options,omitempty"`
}

// Rebuild asks for a new generation of a collection's index.
type Rebuild[O any] struct {
	In
	Options *O `json:"options,omitempty"`
}

// Calibrate asks for measuring plans.
type Calibrate[O any] struct {
	In
	Options *O `json:"options,omitempty"`
}

// Calibrations are what was measured, one a decoder.
type Calibrations[C any] struct {
	Calibrations []C `json:"calibrations"`
}

// Progress says how far work is; Total is 0 when nobody knows.
type Progress struct {
	Stage string `json:"stage"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}
