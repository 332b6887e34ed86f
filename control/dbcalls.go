package control

import (
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/flashdb/flashdb"
)

// progress says how much work is done. total is 0 if it is not known.
type progress struct {
	Stage string `json:"stage"`
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
}

// named names a collection that need not exist.
type named struct {
	Name string `json:"name"`
}

type process struct {
	PID int `json:"pid"`
}

var owner = onDB("owner", func(context.Context, *flashdb.DB, none, out) (process, error) {
	return process{os.Getpid()}, nil
})

// Owner returns the process that has the database open.
func (c *Client) Owner(ctx context.Context) (pid int, err error) {
	p, err := owner.ask(ctx, c, none{}, out{})
	return p.PID, err
}

var stats = onDB("stats", func(ctx context.Context, db *flashdb.DB, _ none, _ out) (flashdb.Stats, error) {
	return db.Stats(ctx)
})

// Stats is that of flashdb.DB.
func (c *Client) Stats(ctx context.Context) (flashdb.Stats, error) {
	return stats.ask(ctx, c, none{}, out{})
}

var metrics = onDB("metrics", func(_ context.Context, db *flashdb.DB, _ none, _ out) (flashdb.Metrics, error) {
	return db.Metrics(), nil
})

// Metrics is that of flashdb.DB.
func (c *Client) Metrics(ctx context.Context) (flashdb.Metrics, error) {
	return metrics.ask(ctx, c, none{}, out{})
}

var check = onDB("check", func(ctx context.Context, db *flashdb.DB, _ none, _ out) ([]string, error) {
	return db.Check(ctx)
})

// Check is that of flashdb.DB.
func (c *Client) Check(ctx context.Context) (findings []string, err error) {
	return check.ask(ctx, c, none{}, out{})
}

var strays = onDB("strays", func(ctx context.Context, db *flashdb.DB, _ none, _ out) ([]string, error) {
	return db.Strays(ctx)
})

// Strays is that of flashdb.DB.
func (c *Client) Strays(ctx context.Context) ([]string, error) {
	return strays.ask(ctx, c, none{}, out{})
}

// A batch is a flashdb.Batch that is sent as the bytes of MarshalBinary.
type batch struct{ *flashdb.Batch }

// MarshalJSON implements json.Marshaler.
func (b batch) MarshalJSON() ([]byte, error) {
	if b.Batch == nil {
		return []byte("null"), nil
	}
	encoded, err := b.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return json.Marshal(encoded)
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *batch) UnmarshalJSON(text []byte) error {
	var encoded []byte
	if err := json.Unmarshal(text, &encoded); err != nil || encoded == nil {
		return err
	}
	b.Batch = new(flashdb.Batch)
	return b.UnmarshalBinary(encoded)
}

type writes struct {
	Batch batch `json:"batch"`
}

var apply = onDB("apply", func(ctx context.Context, db *flashdb.DB, r writes, _ out) (none, error) {
	return none{}, db.Apply(ctx, r.Batch.Batch)
})

// MaxBatchBytes is how large a batch for Apply may be. It is less for another process, because the
// batch is sent as base64.
func (c *Client) MaxBatchBytes() int {
	if c.db != nil {
		return flashdb.MaxBatchBytes
	}
	return maxBody / 4 * 3 * 9 / 10 // the last tenth is for counts and lengths, which the size of a batch does not include
}

// Apply is that of flashdb.DB. A batch for another process has at most MaxBatchBytes.
func (c *Client) Apply(ctx context.Context, b *flashdb.Batch) error {
	_, err := apply.ask(ctx, c, writes{batch{b}}, out{})
	return err
}

var checkpoint = onDB("checkpoint", func(ctx context.Context, db *flashdb.DB, _ none, _ out) (none, error) {
	return none{}, db.Checkpoint(ctx)
})

// Checkpoint is that of flashdb.DB.
func (c *Client) Checkpoint(ctx context.Context) error {
	_, err := checkpoint.ask(ctx, c, none{}, out{})
	return err
}

var compact = onDB("compact", func(ctx context.Context, db *flashdb.DB, r flashdb.CompactOptions, o out) (flashdb.CompactResult, error) {
	r.Progress = o.progress
	return db.Compact(ctx, &r)
})

// Compact is that of flashdb.DB.
func (c *Client) Compact(ctx context.Context, opts *flashdb.CompactOptions) (flashdb.CompactResult, error) {
	o := deref(opts)
	return compact.ask(ctx, c, o, out{progress: o.Progress})
}

// A chunk is the next bytes of a stream.
type chunk struct {
	Bytes []byte `json:"bytes"`
}

// chunks writes a stream of bytes as items.
type chunks func(chunk) error

func (w chunks) Write(b []byte) (int, error) {
	if err := w(chunk{b}); err != nil {
		return 0, err
	}
	return len(b), nil
}

var backup = onDB("backup", func(ctx context.Context, db *flashdb.DB, r flashdb.BackupOptions, o reply[chunk]) (flashdb.BackupResult, error) {
	r.Progress = o.progress
	return db.Backup(ctx, chunks(o.item), &r)
})

// Backup is that of flashdb.DB. The bytes come to w.
func (c *Client) Backup(ctx context.Context, w io.Writer, opts *flashdb.BackupOptions) (flashdb.BackupResult, error) {
	o := deref(opts)
	return backup.ask(ctx, c, o, reply[chunk]{progress: o.Progress, item: func(part chunk) error {
		_, err := w.Write(part.Bytes)
		return err
	}})
}

var collections = onDB("collections", func(ctx context.Context, db *flashdb.DB, _ none, _ out) ([]string, error) {
	return db.Collections(ctx)
})

// Collections is that of flashdb.DB.
func (c *Client) Collections(ctx context.Context) ([]string, error) {
	return collections.ask(ctx, c, none{}, out{})
}

var schema = onCollection("schema", func(_ context.Context, c *flashdb.Collection, _ none, _ out) (flashdb.Schema, error) {
	return c.Schema(), nil
})

// Collection is that of flashdb.DB.
func (c *Client) Collection(ctx context.Context, name string) (_ *Collection, err error) {
	of := &Collection{conn: c.conn, name: name}
	if c.db != nil {
		if of.local, err = c.db.Collection(name); err != nil {
			return nil, err
		}
	}
	if of.schema, err = schema.ask(ctx, of, none{}, out{}); err != nil {
		return nil, err
	}
	return of, nil
}

// ReleaseCollection is Collection of flashdb.Release: the collection as that release has it, which
// need not be live.
func (c *Client) ReleaseCollection(ctx context.Context, release, name string) (_ *Collection, err error) {
	of := &Collection{conn: c.conn, name: name, release: release}
	if c.db != nil {
		r, err := c.db.Release(ctx, release)
		if err != nil {
			return nil, err
		}
		if of.local, err = r.Collection(name); err != nil {
			return nil, err
		}
	}
	if of.schema, err = schema.ask(ctx, of, none{}, out{}); err != nil {
		return nil, err
	}
	return of, nil
}

type creation struct {
	Name   string         `json:"name"`
	Schema flashdb.Schema `json:"schema"`
}

var createCollection = onDB("createcollection", func(_ context.Context, db *flashdb.DB, r creation, _ out) (none, error) {
	_, err := db.CreateCollection(r.Name, r.Schema)
	return none{}, err
})

// CreateCollection is that of flashdb.DB.
func (c *Client) CreateCollection(ctx context.Context, name string, s flashdb.Schema) (*Collection, error) {
	if _, err := createCollection.ask(ctx, c, creation{name, s}, out{}); err != nil {
		return nil, err
	}
	return c.Collection(ctx, name)
}

var dropCollection = onDB("dropcollection", func(ctx context.Context, db *flashdb.DB, r named, _ out) (none, error) {
	return none{}, db.DropCollection(ctx, r.Name)
})

// DropCollection is that of flashdb.DB.
func (c *Client) DropCollection(ctx context.Context, name string) error {
	_, err := dropCollection.ask(ctx, c, named{name}, out{})
	return err
}
