package postgres

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/flashdb/flashdb/remote"
)

// columns are those of a row, as copied writes them.
var columns = []string{"key", "vector", "tags", "payload", "sum"}

// copied returns the values of columns.
func copied(r *remote.Row) []any {
	tags := r.Tags
	if tags == nil {
		tags = []string{}
	}
	return []any{r.Key, r.Vector, tags, r.Payload, int64(r.Sum)}
}

// copyFrom is the number of rows from which Put tries COPY first.
const copyFrom = 50

// Put implements remote.Engine. The rows are stored in one transaction. Many rows are copied, which
// is five times as fast, and fails if one of the keys is there or comes twice. Then, as few rows
// are, each is inserted or replaced.
func (e *Engine) Put(ctx context.Context, in remote.Name, rows []remote.Row) error {
	if err := check(in); err != nil {
		return err
	}
	if len(rows) == 0 {
		_, err := e.built(ctx, in) // is it there
		return err
	}
	err := e.with(ctx, func(conn *pgx.Conn) error {
		if len(rows) >= copyFrom {
			_, err := conn.CopyFrom(ctx, pgx.Identifier{e.config.Schema, bare(in)}, columns,
				pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) { return copied(&rows[i]), nil }))
			if code(err) != uniqueViolation {
				return err
			}
		}
		return e.upsert(ctx, conn, in, rows)
	})
	return explain(ctx, err, "put %d rows into collection %q", len(rows), in.Collection)
}

// upsert inserts or replaces rows, in one round trip and one transaction.
func (e *Engine) upsert(ctx context.Context, conn *pgx.Conn, in remote.Name, rows []remote.Row) error {
	var batch pgx.Batch
	insert := "INSERT INTO " + e.table(in) + ` (key, vector, tags, payload, sum) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (key) DO UPDATE SET vector = excluded.vector, tags = excluded.tags, payload = excluded.payload, sum = excluded.sum`
	for i := range rows {
		batch.Queue(insert, copied(&rows[i])...)
	}
	return conn.SendBatch(ctx, &batch).Close() // a batch is a transaction by itself
}

// Delete implements remote.Engine.
func (e *Engine) Delete(ctx context.Context, in remote.Name, keys []string) (deleted int, err error) {
	if err := check(in); err != nil {
		return 0, err
	}
	err = e.with(ctx, func(conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, "DELETE FROM "+e.table(in)+" WHERE key = ANY($1::text[])", storables(keys))
		deleted = int(tag.RowsAffected())
		return err
	})
	return deleted, explain(ctx, err, "delete %d rows from collection %q", len(keys), in.Collection)
}

// Get implements remote.Engine.
func (e *Engine) Get(ctx context.Context, in remote.Name, keys []string) (found []remote.Row, err error) {
	if err := check(in); err != nil {
		return nil, err
	}
	err = e.with(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT key, vector, tags, sum, payload FROM "+e.table(in)+" WHERE key = ANY($1::text[])", storables(keys))
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, func(from pgx.CollectableRow) (r remote.Row, err error) {
			err = read(from, &r, &r.Payload)
			return r, err
		})
		return err
	})
	return found, explain(ctx, err, "get %d rows of collection %q", len(keys), in.Collection)
}

// read reads key, vector, tags and sum, and then what others says.
func read(from pgx.CollectableRow, r *remote.Row, others ...any) error {
	var sum int64
	if err := from.Scan(append([]any{&r.Key, &r.Vector, &r.Tags, &sum}, others...)...); err != nil {
		return fmt.Errorf("%w: %w", remote.ErrForeign, err)
	}
	if sum < 0 || sum > math.MaxUint32 {
		return fmt.Errorf("row %q: %w: its checksum is %d", r.Key, remote.ErrForeign, sum)
	}
	r.Sum = uint32(sum)
	if len(r.Tags) == 0 {
		r.Tags = nil
	}
	return nil
}

// scanRows is how many rows Scan passes on at a time.
const scanRows = 500

// Scan implements remote.Engine. It reads the rows of one moment. The server sends them as fast as
// fn takes them. A connection is in use until it ends.
func (e *Engine) Scan(ctx context.Context, in remote.Name, f *remote.Filter, fn func([]remote.Row) error) error {
	if err := check(in); err != nil {
		return err
	}
	var q query
	where, err := q.where(f)
	if err != nil {
		return fmt.Errorf("postgres: scan collection %q: %w", in.Collection, err)
	}
	var stopped error // by fn: it is returned as it is
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	err = e.with(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(limited, "SELECT key, vector, tags, sum FROM "+e.table(in)+" WHERE "+where, q.args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		some := make([]remote.Row, 0, scanRows)
		for rows.Next() {
			var r remote.Row
			if err := read(rows, &r); err != nil {
				return err
			}
			if some = append(some, r); len(some) == scanRows {
				if stopped = fn(some); stopped != nil {
					cancel() // the connection is closed, instead of reading the other rows
					return nil
				}
				some = some[:0]
			}
		}
		if err := rows.Err(); err != nil {
			return err
		}
		if len(some) > 0 {
			stopped = fn(some)
		}
		return nil
	})
	if stopped != nil {
		return stopped
	}
	return explain(ctx, err, "scan collection %q", in.Collection)
}

// Count implements remote.Engine.
func (e *Engine) Count(ctx context.Context, in remote.Name) (n int, err error) {
	if err := check(in); err != nil {
		return 0, err
	}
	err = e.with(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT count(*) FROM "+e.table(in)).Scan(&n)
	})
	return n, explain(ctx, err, "count the rows of collection %q", in.Collection)
}
