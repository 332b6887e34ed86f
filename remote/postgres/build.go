package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/flashdb/flashdb/remote"
)

// A build is the building of the indexes of one version.
type build struct {
	done chan struct{} // closed when it has ended
	err  error
}

// Refresh implements remote.Engine. Rows are seen at once, so there is nothing to wait for but the
// indexes, which the first Refresh builds. A build goes on when ctx or this process has ended, and
// another call waits for it.
func (e *Engine) Refresh(ctx context.Context, of remote.Name) error {
	if err := check(of); err != nil {
		return err
	}
	there, err := e.built(ctx, of)
	if err != nil || there {
		return err
	}
	e.mu.Lock()
	b := e.builds[of]
	if b == nil && e.background.Err() == nil {
		b = &build{done: make(chan struct{})}
		e.builds[of] = b
		e.running.Go(func() {
			b.err = e.build(e.background, of)
			e.mu.Lock()
			delete(e.builds, of)
			e.mu.Unlock()
			close(b.done)
		})
	}
	e.mu.Unlock()
	if b == nil {
		return errors.New("postgres: the engine is closed")
	}
	select {
	case <-b.done:
		return explain(ctx, b.err, "build the index of collection %q", of.Collection)
	case <-ctx.Done():
		return fmt.Errorf("postgres: the index of collection %q is still being built: %w", of.Collection, ctx.Err())
	}
}

// vectorIndex returns the name of the index of a version, without its schema.
func vectorIndex(of remote.Name) string { return bare(of) + "_vector" }

// built reports whether a version has its indexes.
func (e *Engine) built(ctx context.Context, of remote.Name) (there bool, err error) {
	err = e.with(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
			WHERE i.indrelid = t.oid AND i.indisvalid AND c.relname = $3)
			FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace WHERE n.nspname = $1 AND t.relname = $2`,
			e.config.Schema, bare(of), vectorIndex(of)).Scan(&there)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		err = missing(of)
	}
	return there, explain(ctx, err, "look for the index of collection %q", of.Collection)
}

// build makes the indexes of a version, and the statistics that the planner needs.
func (e *Engine) build(ctx context.Context, of remote.Name) error {
	var rows, dim int64
	err := e.with(ctx, func(conn *pgx.Conn) error {
		return conn.QueryRow(ctx, "SELECT count(*), (SELECT atttypmod FROM pg_attribute WHERE attrelid = to_regclass($1) AND attname = 'vector') FROM "+e.table(of), e.table(of)).Scan(&rows, &dim)
	})
	if err != nil {
		return err
	}
	err = e.finish(ctx, e.building(of, rows, dim, 2))
	if strings.HasPrefix(code(err), "53") { // too little shared memory, which only workers need
		err = e.finish(ctx, e.building(of, rows, dim, 0))
	}
	if code(err) == duplicateTable || code(err) == uniqueViolation { // another process was first
		return nil
	}
	return err
}

// What the graph of the index needs for a row while it is built, besides the vector, is about
// nodeBytes and neighbourBytes for each of its M.
const (
	nodeBytes      = 250
	neighbourBytes = 48
)

// building returns the statements that make the indexes, which are one transaction.
func (e *Engine) building(of remote.Name, rows, dim int64, workers int) string {
	memory := rows*(nodeBytes+4*dim+neighbourBytes*int64(e.config.M))*5/4 + 64<<20
	memory = min(memory, e.config.BuildMemory)
	name := func(index string) string { return pgx.Identifier{index}.Sanitize() }
	return strings.Join([]string{
		fmt.Sprintf("SET LOCAL maintenance_work_mem = '%dkB'", max(1024, memory>>10)),
		fmt.Sprintf("SET LOCAL max_parallel_maintenance_workers = %d", workers),
		"SET LOCAL statement_timeout = 0",
		"SET LOCAL client_min_messages = error",                         // to nobody, if this process has ended
		"LOCK TABLE " + e.table(of) + " IN SHARE UPDATE EXCLUSIVE MODE", // one build at a time
		"CREATE INDEX " + name(vectorIndex(of)) + " ON " + e.table(of) + " USING hnsw (vector " + e.ext("vector_l2_ops") +
			fmt.Sprintf(") WITH (m = %d, ef_construction = %d)", e.config.M, e.config.EfConstruction),
		"CREATE INDEX " + name(bare(of)+"_tags") + " ON " + e.table(of) + " USING gin (tags)",
		"ANALYZE " + e.table(of),
	}, ";\n")
}

// finish sends statements at once and waits for their end. The server finishes them also if ctx or
// this process ends: pgx would cancel them, so it is left out.
func (e *Engine) finish(ctx context.Context, statements string) error {
	pooled, err := e.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	c, err := pooled.Hijack().PgConn().Hijack()
	if err != nil {
		return err
	}
	defer c.Conn.Close()
	defer context.AfterFunc(ctx, func() { c.Conn.Close() })()
	c.Frontend.SendQuery(&pgproto3.Query{String: statements})
	if err := c.Frontend.Flush(); err != nil {
		return err
	}
	for {
		message, err := c.Frontend.Receive()
		if err != nil {
			return cmp.Or(ctx.Err(), err)
		}
		switch m := message.(type) {
		case *pgproto3.ErrorResponse:
			return pgconn.ErrorResponseToPgError(m)
		case *pgproto3.ReadyForQuery:
			return nil
		}
	}
}
