package flashdb_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
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

// testDB wraps a database that is checked when the test ends.
type testDB struct {
	*flashdb.DB
	t   testing.TB
	dir string
}

// openDB opens a new database in a temporary directory. The cleanup demands
// that DB.Check finds nothing.
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

// randomVector returns dim values from a standard normal.
func randomVector(rng *rand.Rand, dim int) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// randomMLP returns a HadamardMLP dim-hidden-hidden-1 with ReLU.
func randomMLP(t testing.TB, rng *rand.Rand, dim, hidden int) decoder.Decoder {
	t.Helper()
	d, err := newMLP(rng, dim, hidden)
	require.NoError(t, err)
	return d
}

func newMLP(rng *rand.Rand, dim, hidden int) (decoder.Decoder, error) {
	return decoder.New(decoder.Spec{
		Kind: "hadamard_mlp",
		Dim:  dim,
		Layers: []decoder.LayerSpec{
			{Weight: "w0", Bias: "b0", Activation: "relu"},
			{Weight: "w1", Bias: "b1", Activation: "relu"},
			{Weight: "w2", Bias: "b2", Activation: "identity"},
		},
	}, map[string]decoder.Tensor{
		"w0": {Shape: []int{hidden, dim}, Data: randomVector(rng, hidden*dim)},
		"b0": {Shape: []int{hidden}, Data: randomVector(rng, hidden)},
		"w1": {Shape: []int{hidden, hidden}, Data: randomVector(rng, hidden*hidden)},
		"b1": {Shape: []int{hidden}, Data: randomVector(rng, hidden)},
		"w2": {Shape: []int{1, hidden}, Data: randomVector(rng, hidden)},
		"b2": {Shape: []int{1}, Data: randomVector(rng, 1)},
	})
}

func dotDecoder(t testing.TB, dim int) decoder.Decoder {
	t.Helper()
	d, err := decoder.NewDot(dim)
	require.NoError(t, err)
	return d
}
