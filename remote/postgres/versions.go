package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

// The states of a version in the table versions.
const (
	staged  = 0
	live    = 1
	dropped = 2 // its table is dropped as soon as nobody reads it
)

// maxDim is the most dimensions that an HNSW index of pgvector takes.
const maxDim = 2000

// Live implements remote.Engine.
func (e *Engine) Live(ctx context.Context, collection string) (v remote.Version, err error) {
	var description []byte
	err = e.with(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT description FROM "+e.named("versions")+" WHERE collection = $1 AND state = $2", collection, live).Scan(&description)
	})
	if errors.Is(err, pgx.ErrNoRows) || kind(err) == flashdb.ErrNotFound {
		return v, fmt.Errorf("postgres: collection %q %w in schema %q", collection, flashdb.ErrNotFound, e.config.Schema)
	}
	if err == nil {
		if err = json.Unmarshal(description, &v); err != nil {
			err = fmt.Errorf("%w: its description: %w", remote.ErrForeign, err)
		}
	}
	return v, explain(ctx, err, "live version of collection %q", collection)
}

// Versions implements remote.Engine.
func (e *Engine) Versions(ctx context.Context, collection string) ([]remote.Name, error) {
	var ids []string
	err := e.with(ctx, func(conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, "SELECT version FROM "+e.named("versions")+` WHERE collection = $1 AND state <> $2
			ORDER BY state DESC, version`, collection, dropped)
		if err == nil {
			ids, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	if kind(err) == flashdb.ErrNotFound { // nothing was staged yet
		return nil, nil
	}
	names := make([]remote.Name, len(ids))
	for i, id := range ids {
		names[i] = remote.Name{Collection: collection, Version: id}
	}
	return names, explain(ctx, err, "versions of collection %q", collection)
}

// Stage implements remote.Engine. It creates the schema if it is missing.
func (e *Engine) Stage(ctx context.Context, collection string, v remote.Version) error {
	name := remote.Name{Collection: collection, Version: v.ID}
	if err := check(name); err != nil {
		return err
	}
	if v.Dim < 1 || v.Dim+1 > maxDim {
		return fmt.Errorf("postgres: stage collection %q: %w: embeddings have %d dimensions, and an index of pgvector takes 1 to %d", collection, flashdb.ErrInvalid, v.Dim, maxDim-1)
	}
	description, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("postgres: stage collection %q: %w", collection, err)
	}
	e.sweep(ctx, collection)
	err = e.in(ctx, func(tx pgx.Tx) error { return e.stage(ctx, tx, name, v.Dim, description) })
	if code(err) == duplicateTable || code(err) == uniqueViolation {
		// Two processes staged the same at a time, or the table is of somebody else.
		err = e.in(ctx, func(tx pgx.Tx) error { return e.stage(ctx, tx, name, v.Dim, description) })
	}
	return explain(ctx, err, "stage collection %q", collection)
}

// stage creates what is missing of the schema, the line of a version and its table.
func (e *Engine) stage(ctx context.Context, tx pgx.Tx, name remote.Name, dim int, description []byte) error {
	at := e.named("versions")
	var there bool
	if err := tx.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", at).Scan(&there); err != nil {
		return err
	}
	if !there {
		if err := execute(
			ctx, tx.Conn().PgConn(),
			"CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{e.config.Schema}.Sanitize(),
			"CREATE TABLE "+at+` (
				collection text COLLATE "C" NOT NULL,
				version text COLLATE "C" NOT NULL,
				state smallint NOT NULL, -- 0 staged, 1 live, 2 to be dropped
				description bytea NOT NULL,
				PRIMARY KEY (collection, version))`,
			"CREATE UNIQUE INDEX ON "+at+" (collection) WHERE state = 1",
			"COMMENT ON TABLE "+at+" IS 'versions of collections of flashdb; each has a table rows_...'",
		); err != nil {
			return err
		}
	}
	var state int
	var created bool
	if err := tx.QueryRow(ctx, "INSERT INTO "+at+` AS v (collection, version, state, description) VALUES ($1, $2, $3, $4)
		ON CONFLICT (collection, version) DO UPDATE SET description = excluded.description RETURNING v.state, v.xmax = 0`,
		name.Collection, name.Version, staged, description).Scan(&state, &created); err != nil {
		return err
	}
	if state == dropped {
		return fmt.Errorf("%w: version %s is being dropped", remote.ErrUnavailable, name.Version)
	}
	if !created {
		return nil
	}
	rows := e.table(name)
	return execute(
		ctx, tx.Conn().PgConn(),
		"CREATE TABLE "+rows+` (
			key text COLLATE "C" PRIMARY KEY,
			vector `+e.ext("vector")+fmt.Sprintf("(%d)", dim+1)+` NOT NULL,
			tags text[] COLLATE "C" NOT NULL,
			payload bytea,
			sum bigint NOT NULL)`,
		"COMMENT ON TABLE "+rows+" IS 'version "+name.Version+" of collection "+name.Collection+" of flashdb'",
	)
}

// Publish implements remote.Engine.
func (e *Engine) Publish(ctx context.Context, names ...remote.Name) error {
	for _, name := range names {
		if err := e.Refresh(ctx, name); err != nil {
			return err
		}
	}
	at := e.named("versions")
	err := e.in(ctx, func(tx pgx.Tx) error {
		// Others who publish or stage wait. Readers do not.
		if _, err := tx.Exec(ctx, "LOCK TABLE "+at+" IN SHARE ROW EXCLUSIVE MODE"); err != nil {
			return err
		}
		for _, name := range names {
			if _, err := tx.Exec(ctx, "UPDATE "+at+" SET state = $3 WHERE collection = $1 AND version <> $2 AND state = $4", name.Collection, name.Version, dropped, live); err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, "UPDATE "+at+" SET state = $3 WHERE collection = $1 AND version = $2 AND state <> $4", name.Collection, name.Version, live, dropped)
			if err == nil && tag.RowsAffected() == 0 {
				err = missing(name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return explain(ctx, err, "publish")
	}
	for _, name := range names {
		e.sweep(ctx, name.Collection) // what it cannot drop yet is left to the next call
	}
	return nil
}

// missing is the error for a version that is not there.
func missing(of remote.Name) error {
	return fmt.Errorf("version %s of collection %q %w", of.Version, of.Collection, flashdb.ErrNotFound)
}

// Drop implements remote.Engine. It fails with remote.ErrUnavailable while the rows are read.
func (e *Engine) Drop(ctx context.Context, of remote.Name) error {
	if check(of) != nil {
		return nil // there is none
	}
	err := e.with(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, "UPDATE "+e.named("versions")+" SET state = $3 WHERE collection = $1 AND version = $2", of.Collection, of.Version, dropped)
		return err
	})
	if kind(err) == flashdb.ErrNotFound {
		return nil
	}
	if err == nil {
		err = e.sweep(ctx, of.Collection)
	}
	return explain(ctx, err, "drop version %s of collection %q", of.Version, of.Collection)
}

const (
	// lockWait is how long a drop waits for the readers of a table at a time. Readers that come
	// meanwhile wait for it.
	lockWait = 200 * time.Millisecond
	// lastWait is how long its last attempt waits. The server ends an automatic vacuum for a drop
	// that waits for a second.
	lastWait = 1500 * time.Millisecond
	// sweepPause is between two attempts, for the readers that came.
	sweepPause = 100 * time.Millisecond
	// sweepTime is how long a drop tries before its last attempt.
	sweepTime = 5 * time.Second
)

// sweep drops the tables of the versions of a collection that are to be dropped.
func (e *Engine) sweep(ctx context.Context, collection string) error {
	until := time.Now().Add(e.sweepTime)
	for wait := lockWait; ; {
		err := e.with(ctx, func(conn *pgx.Conn) error { return e.sweepOnce(ctx, conn, collection, wait) })
		switch {
		case kind(err) == flashdb.ErrNotFound: // no table of versions
			return nil
		case code(err) != lockTimeout || wait == lastWait:
			return err
		case time.Now().After(until):
			wait = lastWait
		}
		select {
		case <-time.After(sweepPause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sweepOnce tries to drop each of the tables.
func (e *Engine) sweepOnce(ctx context.Context, conn *pgx.Conn, collection string, wait time.Duration) error {
	at := e.named("versions")
	rows, err := conn.Query(ctx, "SELECT version FROM "+at+" WHERE collection = $1 AND state = $2", collection, dropped)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var faults []error
	for _, id := range slices.DeleteFunc(ids, func(id string) bool { return !versions.MatchString(id) }) {
		name := remote.Name{Collection: collection, Version: id}
		faults = append(faults, pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if err := execute(ctx, conn.PgConn(), fmt.Sprintf("SET LOCAL lock_timeout = %d", wait.Milliseconds()), "DROP TABLE IF EXISTS "+e.table(name)); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "DELETE FROM "+at+" WHERE collection = $1 AND version = $2 AND state = $3", collection, id, dropped)
			return err
		}))
	}
	return errors.Join(faults...)
}
