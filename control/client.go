package control

import (
	"context"
	"errors"
	"fmt"

	"github.com/flashdb/flashdb"
)

// ErrNoOwner is returned when nobody answers on the socket of a directory.
var ErrNoOwner = errors.New("nobody answers on the control socket")

// A Client asks a database: one that another process has open, or this one. Its methods are those
// of flashdb.DB, with a context, and with an error since an answer may not come. An error matches
// the sentinel of package flashdb that it matches at the owner. When a context is done, the call is
// cancelled at the owner, too.
type Client struct {
	db   *flashdb.DB // nil: another process has it
	conn *connection // nil: this one has it
	lent bool
}

// Dial returns a client of the database that another process has open in dir and serves. It returns
// ErrNoOwner when nobody does, which is found out by connecting.
func Dial(dir string) (*Client, error) {
	probe, err := dial(context.Background(), dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoOwner, err)
	}
	return &Client{conn: newConnection(dir)}, probe.Close()
}

// Local returns a client of a database that this process has open. Its calls are plain ones of db:
// a program that asks a Client need not know who has a database open.
func Local(db *flashdb.DB) *Client { return &Client{db: db} }

// DB returns the database that this process has open, and nil for another's.
func (c *Client) DB() *flashdb.DB { return c.db }

// Lend returns a client that asks the same database, and whose Close does nothing.
func (c *Client) Lend() *Client { return &Client{db: c.db, conn: c.conn, lent: true} }

// Close closes the database of Local, and otherwise the connections to its owner, who keeps it
// open.
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

// A Collection is a collection of a Client's database. It is asked by its name: of one that is
// dropped and created again, it means the new one, but for a Client of Local.
type Collection struct {
	local  *flashdb.Collection // nil: of another process
	conn   *connection
	name   string
	schema flashdb.Schema
}

// Name returns the collection's name.
func (c *Collection) Name() string { return c.name }

// Schema returns the schema that the collection had when it was asked for.
func (c *Collection) Schema() flashdb.Schema { return c.schema }

func (c *Collection) here() (*flashdb.Collection, bool) { return c.local, c.local != nil }

func (c *Collection) there() (*connection, string) { return c.conn, c.name }

// deref returns the options that o points to, and the default ones for nil.
func deref[O any](o *O) (options O) {
	if o != nil {
		options = *o
	}
	return options
}
