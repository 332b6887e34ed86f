package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/flashdb/flashdb"
)

// ErrNoOwner is returned when no process answers on the socket of a directory.
var ErrNoOwner = errors.New("nobody answers on the control socket")

// A Client uses a database that another process has open, or this one. Its methods are those of
// flashdb.DB, each with a context and an error, because a call may fail on the way. An error
// matches the same sentinel of package flashdb as in the process that has the database open. When
// the context ends, the call is cancelled there too.
type Client struct {
	db   *flashdb.DB // nil: another process has it
	conn *connection // nil: this one has it
	lent bool
}

// Dial returns a client of the database that another process has open in dir and serves. It
// connects, and returns ErrNoOwner if no process answers.
func Dial(dir string) (*Client, error) {
	probe, err := dial(context.Background(), dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoOwner, err)
	}
	return &Client{conn: newConnection(dir)}, probe.Close()
}

// Local returns a client of a database that this process has open. It calls the methods of db
// directly. So a program can use a Client whichever process has the database open.
func Local(db *flashdb.DB) *Client { return &Client{db: db} }

// DB returns the database of a client made by Local, or nil for another client.
func (c *Client) DB() *flashdb.DB { return c.db }

// Lend returns a client of the same database, whose Close does nothing.
func (c *Client) Lend() *Client { return &Client{db: c.db, conn: c.conn, lent: true} }

// Close closes the database of a client made by Local. For another client it closes only the
// connections.
func (c *Client) Close() error {
	switch {
	case c.lent:
		return nil
	case c.db != nil:
		return c.db.Close()
	}
	c.conn.close()
	return nil
}

func (c *Client) here() (*flashdb.DB, bool) { return c.db, c.db != nil }

func (c *Client) there() (*connection, string) { return c.conn, "" }

// A Collection is a collection of the database of a Client. Calls to another process name it by its
// name. So after it was dropped and created again, they use the new one. For a Client made by Local
// they do not.
type Collection struct {
	local   *flashdb.Collection // nil: of another process
	conn    *connection
	name    string
	release string // "": the live one
	schema  flashdb.Schema
}

// Name returns the collection's name.
func (c *Collection) Name() string { return c.name }

// Schema returns the schema that the collection had when this Collection was made.
func (c *Collection) Schema() flashdb.Schema { return c.schema }

func (c *Collection) here() (*flashdb.Collection, bool) { return c.local, c.local != nil }

func (c *Collection) there() (*connection, string) {
	if c.release == "" {
		return c.conn, c.name
	}
	return c.conn, c.name + ofRelease + c.release
}

// deref returns the options that o points to, and the default ones for nil.
func deref[O any](o *O) (options O) {
	if o != nil {
		options = *o
	}
	return options
}
