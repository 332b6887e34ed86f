package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

// An Engine is a remote.Engine over PostgreSQL. It is safe for concurrent use.
type Engine struct {
	config Config
	pool   *pgxpool.Pool
	stop   context.CancelFunc // of background
	// background is the context of what goes on when its caller has left: waiting for indexes.
	background context.Context
	running    sync.WaitGroup

	// Constants, but for tests.
	sweepTime   time.Duration
	minCompared int

	mu        sync.Mutex
	extension string                 // the schema of pgvector, once a connection has been made
	builds    map[remote.Name]*build // those that run
}

var _ remote.Engine = (*Engine)(nil)

// Open returns an engine. It does not connect yet: a server that is down is an error of the first
// call.
func Open(c Config) (*Engine, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	config, err := c.pool()
	if err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	e := &Engine{config: c, sweepTime: sweepTime, minCompared: minCompared, builds: map[remote.Name]*build{}}
	config.AfterConnect = e.prepare
	e.background, e.stop = context.WithCancel(context.Background())
	if e.pool, err = pgxpool.NewWithConfig(e.background, config); err != nil {
		return nil, fmt.Errorf("postgres: %w", err)
	}
	return e, nil
}

// Close implements remote.Engine. It does not wait for an index that is being built. The server
// finishes it.
func (e *Engine) Close() error {
	e.stop()
	e.running.Wait()
	e.pool.Close()
	return nil
}

// errSetup is the error of a server on which no call can succeed until somebody changes it.
var errSetup = errors.New("the server cannot be used")

// prepare makes a new connection ready: it knows the type of vectors.
func (e *Engine) prepare(ctx context.Context, conn *pgx.Conn) error {
	if encoding := conn.PgConn().ParameterStatus("server_encoding"); encoding != "UTF8" {
		return fmt.Errorf("%w: the database has the encoding %s: create one with the encoding UTF8", errSetup, encoding)
	}
	oid, schema, version, err := lookUp(ctx, conn)
	if errors.Is(err, pgx.ErrNoRows) {
		// Two connections may do this at a time, and one of them then fails.
		_, failed := conn.Exec(ctx, "CREATE EXTENSION IF NOT EXISTS vector")
		if oid, schema, version, err = lookUp(ctx, conn); errors.Is(err, pgx.ErrNoRows) {
			if failed == nil || kind(failed) == remote.ErrUnavailable {
				return failed
			}
			return fmt.Errorf("%w: the database lacks the extension vector, and creating it failed: %w: let an administrator run CREATE EXTENSION vector", errSetup, failed)
		}
	}
	if err != nil {
		return err
	}
	if !recent(version) {
		return fmt.Errorf("%w: it has pgvector %s, want 0.8 or newer: run ALTER EXTENSION vector UPDATE", errSetup, version)
	}
	conn.TypeMap().RegisterType(&pgtype.Type{Name: "vector", OID: oid, Codec: vectors{}})
	e.mu.Lock()
	e.extension = schema
	e.mu.Unlock()
	// The library of the extension is loaded by its first use. Its settings are known from then on.
	_, err = conn.Exec(ctx, "SELECT '[0]'::"+pgx.Identifier{schema, "vector"}.Sanitize())
	return err
}

// lookUp returns the type of vectors, and the schema and version of the extension.
func lookUp(ctx context.Context, conn *pgx.Conn) (oid uint32, schema, version string, err error) {
	err = conn.QueryRow(ctx, `SELECT t.oid, n.nspname, e.extversion FROM pg_extension e
		JOIN pg_namespace n ON n.oid = e.extnamespace
		JOIN pg_type t ON t.typnamespace = n.oid AND t.typname = 'vector'
		WHERE e.extname = 'vector'`).Scan(&oid, &schema, &version)
	return oid, schema, version, err
}

// recent reports whether a version of pgvector has iterative scans.
func recent(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, err := strconv.Atoi(major)
	b, err2 := strconv.Atoi(minor)
	return err == nil && err2 == nil && (a > 0 || b >= 8)
}

// with calls fn with a connection. After an error fn need not have ended its transaction.
func (e *Engine) with(ctx context.Context, fn func(conn *pgx.Conn) error) error {
	c, err := e.pool.Acquire(ctx)
	if err == nil {
		err = fn(c.Conn())
		if status := c.Conn().PgConn().TxStatus(); err != nil && !c.Conn().IsClosed() && status != 'I' {
			c.Conn().Exec(ctx, "ROLLBACK") //nolint:errcheck // a connection that is still in a transaction is not used again
		}
		c.Release()
	}
	if err != nil && ctx.Err() == nil && down(err) {
		e.pool.Reset() // the other connections are lost too, and would fail one call each
	}
	return err
}

// in calls fn in a transaction.
func (e *Engine) in(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return e.with(ctx, func(conn *pgx.Conn) error { return pgx.BeginFunc(ctx, conn, fn) })
}

// execute runs statements that have no arguments and return nothing, as one transaction.
func execute(ctx context.Context, conn *pgconn.PgConn, statements ...string) error {
	return conn.Exec(ctx, strings.Join(statements, ";\n")).Close()
}

// Names that are written into statements. Everything in them was checked or made here.

var (
	collections = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	versions    = regexp.MustCompile(`^[0-9a-f]{16}$`)
)

// check reports what is wrong with a name.
func check(of remote.Name) error {
	switch {
	case !collections.MatchString(of.Collection):
		return fmt.Errorf("postgres: %w: the collection is %q, want 1 to 64 letters, digits, '.', '_' or '-'", flashdb.ErrInvalid, of.Collection)
	case !versions.MatchString(of.Version):
		return fmt.Errorf("postgres: %w: the version is %q, want 16 lower-case hexadecimal digits", flashdb.ErrInvalid, of.Version)
	}
	return nil
}

// bare returns the name of the table of a version, without its schema. Two collections may have a
// version of the same name.
func bare(of remote.Name) string {
	return fmt.Sprintf("rows_%s_%08x", of.Version, crc32.ChecksumIEEE([]byte(of.Collection)))
}

// table returns the table of a version.
func (e *Engine) table(of remote.Name) string { return e.named(bare(of)) }

// named returns a name in our schema.
func (e *Engine) named(name string) string {
	return pgx.Identifier{e.config.Schema, name}.Sanitize()
}

// ext returns a name in the schema of pgvector, which is known once a connection was made.
func (e *Engine) ext(name string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return pgx.Identifier{e.extension, name}.Sanitize()
}

// distance returns the operator of the Euclidean distance.
func (e *Engine) distance() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return "OPERATOR(" + pgx.Identifier{e.extension}.Sanitize() + ".<->)"
}
