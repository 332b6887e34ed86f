// Package tests tries to break a database, by its public API alone: processes are killed, system
// calls and disks fail, files are damaged, cut, replaced and crafted, and random histories run
// against a model. The files of earlier formats are here too.
package tests

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/dbtest"
)

func TestMain(m *testing.M) {
	if spec, ok := os.LookupEnv(childEnv); ok {
		live(spec)
		return
	}
	// A fifth of rapid's own number; the command line, which is read later, has its way.
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// some returns the cases to try: all of them, or every fifth with -short. What they break is broken
// by one goroutine, so the race detector, which makes them many times slower, needs few of them.
func some[C any](cases []C) []C {
	if !testing.Short() {
		return cases
	}
	var few []C
	for i := 0; i < len(cases); i += 5 {
		few = append(few, cases[i])
	}
	return few
}

// openDB opens a database as most tests have it: small flushes, no calibration.
func openDB(t testing.TB, dir string) *flashdb.DB {
	t.Helper()
	db, err := flashdb.Open(dir, &flashdb.Options{FlushBytes: 1 << 16, CalibrateTime: -1})
	require.NoError(t, err)
	return db
}

// checkAndClose demands that DB.Check finds nothing.
func checkAndClose(t testing.TB, db *flashdb.DB) {
	t.Helper()
	findings, err := db.Check(context.Background())
	require.NoError(t, err)
	require.Empty(t, findings)
	require.NoError(t, db.Close())
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
