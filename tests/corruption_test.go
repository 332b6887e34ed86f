package tests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/internal/vfs"
)

// image is the files of a database as a crash leaves them: a served generation, newer rows and
// deletes in the store, and writes that are only in the log.
type image struct {
	files  map[string][]byte // by path relative to the directory
	log    string            // path of the log segment
	writes []int             // where in it each write begins, and its length
	whole  string            // what every read of the image answers
	// cut is what they answer when the log ends before the i-th write. A log that is cut short
	// there is what a crash leaves if the writes behind were never acknowledged: nothing tells the
	// two apart.
	cut []string
}

// images are those that a test has made, by number of nodes and seed. Nobody changes them.
var images sync.Map

// newImage returns an image of n nodes with rows by chance.
func newImage(t *testing.T, n int, seed uint64) image {
	t.Helper()
	which := [2]uint64{uint64(n), seed}
	if im, ok := images.Load(which); ok {
		return im.(image)
	}
	im := makeImage(t, n, seed)
	images.Store(which, im)
	return im
}

func makeImage(t *testing.T, n int, seed uint64) image {
	t.Helper()
	const dim = 8
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(seed, 7))
	dir := filepath.Join(t.TempDir(), "image.flash")
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	c, err := db.CreateCollection("papers", flashdb.Schema{Dim: dim})
	require.NoError(t, err)
	node := func(i int) flashdb.Node {
		return flashdb.Node{
			Key:       fmt.Sprintf("node%d", i),
			Embedding: randomVector(rng, dim),
			Tags:      []string{"all", fmt.Sprintf("third%d", i%3)},
			Payload:   bytes.Repeat([]byte{byte(i)}, i%9),
		}
	}
	var nodes []flashdb.Node
	for i := range n {
		nodes = append(nodes, node(i))
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	require.NoError(t, c.PutDecoder(ctx, "mlp", randomMLP(t, rng, dim, 8)))
	require.NoError(t, c.SetMeta(ctx, "origin", "test"))
	for i := range 20 {
		require.NoError(t, c.Link(ctx, flashdb.Edge{Source: node(i).Key, Target: node(i + 1).Key}, flashdb.Edge{Source: node(i).Key, Target: node(i + 30).Key}))
	}
	users, err := db.CreateCollection("users", flashdb.Schema{Dim: dim})
	require.NoError(t, err)
	across := func(user, paper int) flashdb.Edge {
		return flashdb.Edge{SourceCollection: "users", Source: node(user).Key, Target: node(paper).Key}
	}
	for i := range 20 {
		require.NoError(t, users.Upsert(ctx, node(i)))
		require.NoError(t, c.Link(ctx, across(i, i+2), across(i, i+40)))
	}
	_, err = c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
	require.NoError(t, err)
	require.NoError(t, c.Upsert(ctx, node(3), node(n), node(n+1)))
	_, err = c.Delete(ctx, "node5")
	require.NoError(t, err)
	_, err = db.Stats(ctx) // flushes; from here on nothing is read, which would flush too
	require.NoError(t, err)
	var im image
	write := func(err error) {
		require.NoError(t, err)
		im.files = readFiles(t, dir)
		for name := range im.files {
			if strings.HasPrefix(name, "wal/") {
				im.log = name
			}
		}
		im.writes = append(im.writes, len(im.files[im.log]))
	}
	write(c.SetMeta(ctx, "origin", "another"))
	write(c.Upsert(ctx, node(8), node(n+2)))
	write(c.Link(ctx, flashdb.Edge{Source: "node8", Target: "node9"}))
	write(c.Link(ctx, across(8, 9), across(1, 10)))
	write(c.Upsert(ctx, node(4), node(n+3)))
	im.writes = append([]int{logHeader}, im.writes...)
	for _, at := range im.writes {
		im.cut = append(im.cut, im.answers(t, im.files[im.log][:at]))
	}
	im.whole = im.cut[len(im.cut)-1]
	return im
}

// logHeader is the length of the header of a log segment.
const logHeader = 24

// answers returns the answers of the image with that log.
func (im *image) answers(t *testing.T, log []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d.flash")
	im.write(t, dir, im.log, log)
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	s, err := answers(db)
	require.NoError(t, err)
	findings, err := db.Check(context.Background())
	require.NoError(t, err)
	require.Empty(t, findings)
	require.NoError(t, db.Close())
	return s
}

// answers reads everything that a caller can, and writes it down.
func answers(db *flashdb.DB) (string, error) {
	ctx := context.Background()
	var b strings.Builder
	names, err := db.Collections(ctx)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(&b, names)
	c, err := db.Collection("papers")
	if err != nil {
		return "", err
	}
	note := func(v any, e error) {
		fmt.Fprintln(&b, v)
		err = errors.Join(err, e)
	}
	result := func(r flashdb.Result, e error) { note(r.Hits, e) }
	result(c.Predict(ctx, "node1", 10, nil))
	result(c.Predict(ctx, "node8", 10, &flashdb.PredictOptions{Exact: true, WithNode: true}))
	result(c.Predict(ctx, "node2", 5, &flashdb.PredictOptions{Filter: "third1 and all"}))
	result(c.Predict(ctx, "node3", 50, &flashdb.PredictOptions{Plan: &flashlight.Plan{Rounds: 3, PerRound: 100, Probes: index.Probes{Share: 1}}}))
	result(c.Predict(ctx, "node1", 10, &flashdb.PredictOptions{SourceCollection: "users"}))
	for e, err := range c.Links(ctx) {
		note(e, err)
	}
	vec := make([]float32, c.Schema().Dim)
	vec[0] = 1
	result(c.Search(ctx, vec, 10, nil))
	var keys []string
	for key, err := range c.Keys(ctx) {
		note(key, err)
		keys = append(keys, key)
	}
	for i, key := range keys {
		if i%7 == 0 || i < 12 {
			note(c.Get(ctx, key))
			note(c.Linked(ctx, flashdb.Edge{Source: key}))
		}
	}
	note(len(keys), nil)
	value, ok, e := c.Meta(ctx, "origin")
	note(value, e)
	note(ok, nil)
	stats, e := db.Stats(ctx)
	for _, s := range stats.Collections {
		note(fmt.Sprint(s.Name, s.Schema, s.Nodes, s.Tombstones, s.Decoders, s.Tags), e)
	}
	return b.String(), err
}

func readFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(name)], err = os.ReadFile(path)
		return err
	}))
	return files
}

// write makes the image's files in dir, one of them changed.
func (im *image) write(t *testing.T, dir, name string, changed []byte) {
	t.Helper()
	for file, data := range im.files {
		path := filepath.Join(dir, filepath.FromSlash(file))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if file == name {
			data = changed
		}
		require.NoError(t, os.WriteFile(path, data, 0o600))
	}
}

// A mutation is one damage to one file.
type mutation struct {
	file string
	at   int
	kind string
	size int
}

func (m mutation) String() string {
	return fmt.Sprintf("%s: %s %d at %d", m.file, m.kind, m.size, m.at)
}

func (m mutation) apply(data []byte, rng *rand.Rand) []byte {
	data = bytes.Clone(data)
	end := min(len(data), m.at+m.size)
	switch m.kind {
	case "flip":
		data[m.at] ^= 1 << rng.IntN(8)
	case "invert":
		data[m.at] = ^data[m.at]
	case "zero":
		clear(data[m.at:end])
	case "junk":
		for i := m.at; i < end; i++ {
			data[i] = byte(rng.Uint32())
		}
	case "truncate":
		data = data[:m.at]
	case "extend":
		data = append(data, make([]byte, m.size)...)
	case "extend with junk":
		for range m.size {
			data = append(data, byte(rng.Uint32()))
		}
	}
	return data
}

// outcome is how damage shows.
type outcome string

const (
	atOpen    outcome = "refused by Open"
	atRead    outcome = "reported by a read"
	byCheck   outcome = "found by Check"
	unchanged outcome = "all answers unchanged"
	tornTail  outcome = "cut off as a torn log tail"
	wrong     outcome = "answers changed, and nothing says why"
)

// judge opens the damaged image, reads it and checks it.
func (im *image) judge(t *testing.T, m mutation, rng *rand.Rand) outcome {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d.flash")
	changed := m.apply(im.files[m.file], rng)
	im.write(t, dir, m.file, changed)
	var events bytes.Buffer
	db, err := openOn(vfs.Unsynced(vfs.OS()), dir, &flashdb.Options{Logger: slog.New(slog.NewTextHandler(&events, nil))})
	if err != nil {
		requireDamage(t, m, err)
		return atOpen
	}
	got, err := answers(db)
	findings, checkErr := db.Check(context.Background())
	if err := db.Close(); err != nil {
		requireDamage(t, m, err)
	}
	require.NoError(t, os.RemoveAll(dir))
	assert.NoError(t, checkErr, "%v: damage is a finding", m)
	switch {
	case errors.Is(err, flashdb.ErrCorrupt):
		requireDamage(t, m, err)
		return atRead
	case len(findings) > 0:
		return byCheck // even if a key was not found
	case err != nil:
		requireDamage(t, m, err)
	case got == im.whole:
		return unchanged
	case m.file == im.log && im.torn(m, got, events.String()):
		return tornTail
	}
	for i, line := range strings.Split(im.whole, "\n") {
		if now := strings.Split(got, "\n"); i >= len(now) || now[i] != line {
			t.Errorf("%v: line %d of the answers changed, and nothing says why: %.200q", m, i, line)
			break
		}
	}
	return wrong
}

// torn tells whether the answers are those of a log cut short, by the damage or by Open, which said
// so: damage that reaches into the last write leaves no whole frame behind it, as a write does that
// a crash tore.
func (im *image) torn(m mutation, got, events string) bool {
	said := strings.Contains(events, "torn log tail")
	for i, answers := range im.cut {
		if got != answers {
			continue
		}
		if m.kind == "truncate" && (said || im.writes[i] == m.at) {
			return true
		}
		if last := im.writes[len(im.writes)-2]; said && m.at+m.size > last {
			return true
		}
	}
	return false
}

// requireDamage demands that err says what is damaged, on one line.
func requireDamage(t *testing.T, m mutation, err error) {
	t.Helper()
	assert.True(t, errors.Is(err, flashdb.ErrCorrupt) || errors.Is(err, flashdb.ErrVersion), "%v: %v", m, err)
	assert.Contains(t, err.Error(), "d.flash", "%v: it names the file", m)
}

// TestCorruption damages every kind of file, and demands that the damage is reported or changes no
// answer. FLASHDB_CORRUPTIONS sets the number of random mutations per file, FLASHDB_SEED their
// seed.
func TestCorruption(t *testing.T) {
	n, seed := envNumber(t, "FLASHDB_CORRUPTIONS", 12), envNumber(t, "FLASHDB_SEED", 1)
	t.Logf("FLASHDB_CORRUPTIONS=%d FLASHDB_SEED=%d", n, seed)
	im := newImage(t, 300, 7)
	require.Len(t, im.files, 4, "store, log, generation, owner")
	for name, data := range im.files {
		t.Run(strings.ReplaceAll(name, "/", "_"), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(len(name))))
			count := map[outcome]int{}
			all := mutations(name, data, n, rng)
			for _, m := range all {
				if testing.Verbose() {
					t.Log(m)
				}
				count[im.judge(t, m, rng)]++
			}
			attempts.Count(t, len(all), "files damaged")
			t.Logf("outcomes: %v", count)
		})
	}
}

func envNumber(t *testing.T, name string, byDefault int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return byDefault
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// mutations returns random damage: a third of it near the structure of the file.
func mutations(name string, data []byte, n int, rng *rand.Rand) []mutation {
	kinds := []string{"flip", "flip", "flip", "zero", "junk", "truncate", "extend", "extend with junk"}
	var all []mutation
	borders := structure(name, data)
	for i := range n {
		m := mutation{file: name, kind: kinds[rng.IntN(len(kinds))], size: 1 + rng.IntN(1<<rng.IntN(10))}
		for range 20 { // much of flash.db is room to grow
			if m.at = rng.IntN(len(data)); data[m.at] != 0 {
				break
			}
		}
		if i%3 == 0 {
			m.at = borders[rng.IntN(len(borders))]
		}
		all = append(all, m)
	}
	return all
}

// structure returns the offsets of the headers of a file, byte by byte.
func structure(name string, data []byte) []int {
	var at []int
	span := func(from, n int) {
		for i := from; i < min(from+n, len(data)); i++ {
			at = append(at, i)
		}
	}
	switch {
	case name == "flash.db":
		for page := 0; page < len(data); page += 8 << 10 {
			if data[page+10] != 0 || page == 0 { // it has elements
				span(page, 96)
			}
		}
	case strings.HasSuffix(name, ".ivf"):
		span(0, 96+7*32)
		for from := 96 + 7*32; from < len(data); from += 64 { // where sections may begin
			span(from, 1)
		}
	default:
		span(0, len(data))
	}
	return at
}
