package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/remote"
	"github.com/flashdb/flashdb/remote/conformance"
)

// configured returns the configuration for the server that POSTGRES_URL names, with a schema of the
// test, which is dropped in the end.
func configured(t *testing.T) Config {
	t.Helper()
	address := os.Getenv("POSTGRES_URL")
	if address == "" {
		t.Skip("POSTGRES_URL is not set: see server/README.md")
	}
	c, err := FromURL(address, os.Getenv)
	require.NoError(t, err)
	c.Schema = fmt.Sprintf("flashdb_test_%08x", rand.Uint32())
	t.Cleanup(func() {
		e := open(t, c)
		_, err := e.pool.Exec(context.Background(), "DROP SCHEMA IF EXISTS "+c.Schema+" CASCADE")
		require.NoError(t, err)
		require.NoError(t, e.Close())
	})
	return c
}

func open(t *testing.T, c Config) *Engine {
	t.Helper()
	e, err := Open(c)
	require.NoError(t, err)
	return e
}

func TestConformance(t *testing.T) {
	c := configured(t)
	conformance.Run(t, func(t *testing.T) remote.Engine { return open(t, c) })
}

// avoiding returns c for connections on which the planner avoids to compare all rows, as it does
// for as few as in the tests.
func avoiding(t *testing.T, c Config) Config {
	t.Helper()
	u, err := url.Parse(c.URL)
	require.NoError(t, err)
	q := u.Query()
	q.Set("options", "-c enable_seqscan=off -c enable_bitmapscan=off")
	u.RawQuery = encode(q)
	c.URL = u.String()
	return c
}

// TestConformanceIndex has every approximate search use the index.
func TestConformanceIndex(t *testing.T) {
	c := avoiding(t, configured(t))
	conformance.Run(t, func(t *testing.T) remote.Engine { return open(t, c) })
}
