package postgres

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
)

// environment returns a getenv.
func environment(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func TestFromURL(t *testing.T) {
	c, err := FromURL("postgres://app@db1:5433,db2:5434/links?sslmode=disable&schema=graph&connections=3&build_memory=64&m=24&ef_construction=200&target_session_attrs=read-write",
		environment(map[string]string{"PGPASSWORD": "secret"}))
	require.NoError(t, err)
	assert.NotContains(t, c.URL, "secret")
	assert.Equal(t, Config{URL: c.URL, Password: "secret", Schema: "graph", Connections: 3, BuildMemory: 64 << 20, M: 24, EfConstruction: 200}, c)
	pool, err := c.pool()
	require.NoError(t, err)
	conn := pool.ConnConfig
	assert.Equal(t, int32(3), pool.MaxConns)
	assert.Equal(t, []any{"db1", uint16(5433), "app", "links", "secret"}, []any{conn.Host, conn.Port, conn.User, conn.Database, conn.Password})
	require.Len(t, conn.Fallbacks, 1)
	assert.Equal(t, "db2", conn.Fallbacks[0].Host)
	assert.NotNil(t, conn.ValidateConnect)
	assert.Nil(t, conn.TLSConfig)
	for _, ours := range []string{"schema", "connections", "build_memory", "m", "ef_construction"} {
		assert.NotContains(t, conn.RuntimeParams, ours, "the server does not know it")
	}

	c, err = FromURL("postgresql://app@db/links?sslmode=verify-full&options=-c%20work_mem%3D8MB", environment(nil))
	require.NoError(t, err)
	pool, err = c.pool()
	require.NoError(t, err)
	assert.Equal(t, "db", pool.ConnConfig.TLSConfig.ServerName)
	assert.False(t, pool.ConnConfig.TLSConfig.InsecureSkipVerify)
	assert.Equal(t, "-c work_mem=8MB", pool.ConnConfig.RuntimeParams["options"])
	whole, err := c.withDefaults()
	require.NoError(t, err)
	assert.Equal(t, Config{URL: c.URL, Schema: "flashdb", Connections: 8, BuildMemory: 1 << 30, M: 16, EfConstruction: 128}, whole)
}

func TestPasswordFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pgpass")
	require.NoError(t, os.WriteFile(file, []byte("db:5432:links:app:from the file\n"), 0o600))
	c, err := FromURL("postgres://app@db:5432/links?sslmode=disable", environment(map[string]string{"PGPASSFILE": file}))
	require.NoError(t, err)
	pool, err := c.pool()
	require.NoError(t, err)
	assert.Equal(t, "from the file", pool.ConnConfig.Password)
}

func TestFromURLRefuses(t *testing.T) {
	for address, says := range map[string]string{
		"postgres://app:hunter2@db/links":                 "PGPASSWORD",
		"postgres://app@db/links?password=hunter2":        "PGPASSWORD",
		"postgres://app@db/links?sslpassword=hunter2":     "PGPASSWORD",
		"host=db password=hunter2":                        "postgres://",
		"mysql://app:hunter2@db":                          "postgres://",
		"postgres://app:hunter2@db:x/links":               "not a URL",
		"postgres://app@db/links?a=%zz":                   "after ?",
		"postgres://app@db/links?sslmode=maybe":           "sslmode",
		"postgres://app@db/links?connections=many":        "connections",
		"postgres://app@db/links?connections=1":           "at least 2",
		"postgres://app@db/links?schema=Links":            "lower-case",
		"postgres://app@db/links?schema=pg_links":         "schema",
		"postgres://app@db/links?schema=x%22%20y":         "schema",
		"postgres://app@db/links?m=1":                     "m is 1",
		"postgres://app@db/links?m=32&ef_construction=63": "ef_construction",
	} {
		_, err := FromURL(address, environment(nil))
		require.ErrorIs(t, err, flashdb.ErrInvalid, address)
		assert.ErrorContains(t, err, says)
		assert.NotContains(t, err.Error(), "hunter2", "%s", address)
		_, err = Open(Config{URL: address, Schema: "-"})
		assert.Error(t, err)
	}
}
