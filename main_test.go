package flashdb_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/dbtest"
)

// smallDim is the length of rows whose length does not matter.
const smallDim = 6

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// testDB wraps a database that is checked when the test ends.
type testDB struct {
	*flashdb.DB
	t   testing.TB
	dir string
}

// computes skips a test with -short. Such a test mostly computes, which the race detector makes
// many times slower, and other tests run the same goroutines in less time.
func computes(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it computes, in goroutines that other tests run too")
	}
}

// openDB opens a new database in a temporary directory. The cleanup demands that DB.Check finds
// nothing.
func openDB(t testing.TB) *testDB {
	t.Helper()
	d := &testDB{t: t, dir: filepath.Join(t.TempDir(), "test.flash")}
	d.open()
	t.Cleanup(d.checkAndClose)
	return d
}

func (d *testDB) open() {
	d.t.Helper()
	db, err := flashdb.Open(d.dir, &flashdb.Options{FlushBytes: 1 << 16, CalibrateTime: -1})
	require.NoError(d.t, err)
	d.DB = db
}

// reopen closes and opens the database again.
func (d *testDB) reopen() {
	d.t.Helper()
	require.NoError(d.t, d.Close())
	d.open()
}

func (d *testDB) checkAndClose() {
	findings, err := d.Check(context.Background())
	require.NoError(d.t, err)
	require.Empty(d.t, findings)
	require.NoError(d.t, d.Close())
}

func (d *testDB) collection(name string, dim int) *flashdb.Collection {
	d.t.Helper()
	c, err := d.CreateCollection(name, flashdb.Schema{Dim: dim})
	require.NoError(d.t, err)
	return c
}

func randomVector(rng *rand.Rand, dim int) []float32 { return dbtest.RandomVector(rng, dim) }

func randomMLP(t testing.TB, rng *rand.Rand, dim, hidden int) decoder.Decoder {
	t.Helper()
	d, err := dbtest.RandomMLP(rng, dim, hidden)
	require.NoError(t, err)
	return d
}

func dotDecoder(t testing.TB, dim int) decoder.Decoder {
	t.Helper()
	d, err := decoder.NewDot(dim)
	require.NoError(t, err)
	return d
}
