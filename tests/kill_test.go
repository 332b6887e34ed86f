package tests

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/attempts"
	"github.com/flashdb/flashdb/internal/failpoint"
)

// childEnv holds the life of a process that TestMain then lives instead of running tests.
const childEnv = "FLASHDB_TEST_CHILD"

// writers are the goroutines of a child that write, each keys of its own.
const writers = 3

// A life is what a child process does with a database: its writers write until each has done
// Writes, the first of them by batches across two collections, with links between them, while
// another goroutine rebuilds, flushes, checks and so on. It says on its standard output what it
// begins and what was acknowledged, one line each:
//
//	open            the collection is there
//	try W, ack W    the next write of writer W
//	generation N    a rebuild was acknowledged
//	value ...       see anyRelease
//	segment         a segment was acknowledged
//	error TEXT      of a writer, which ends it
//	closed
type life struct {
	Dir    string
	Seed   uint64
	Done   [writers]int // writes of each writer in earlier lives
	Writes int

	// Point kills the process when it is reached for the Nth time.
	Point failpoint.Point
	Nth   int64
}

// live is the child's main function.
func live(spec string) {
	var l life
	if err := json.Unmarshal([]byte(spec), &l); err != nil {
		panic(err)
	}
	var reached atomic.Int64
	failpoint.Hook(func(p failpoint.Point) {
		if p == l.Point && reached.Add(1) == l.Nth {
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			select {} // the signal is on its way
		}
	})
	db, err := flashdb.Open(l.Dir, &flashdb.Options{FlushBytes: 1 << 13, SegmentRows: 40, Workers: 2, CalibrateTime: -1})
	if err != nil {
		say("error open: %v", err)
		return
	}
	c, err := db.OpenCollection("c", flashdb.Schema{Dim: modelDim})
	if err == nil {
		_, err = db.OpenCollection("twin", flashdb.Schema{Dim: modelDim})
	}
	if err == nil {
		err = beginReleases(context.Background(), db)
	}
	if err != nil {
		say("error create: %v", err)
		return
	}
	say("open")
	var writing sync.WaitGroup
	var chores sync.WaitGroup
	var over atomic.Bool
	for w := range writers {
		writing.Go(func() { l.write(db, c, w) })
	}
	chores.Go(func() { l.chores(db, c, &over) })
	writing.Wait()
	over.Store(true)
	chores.Wait()
	if err := db.Close(); err != nil {
		say("error close: %v", err)
		return
	}
	say("closed")
}

// say writes one line at once, so that the parent has it whenever this process dies.
func say(format string, args ...any) { fmt.Fprintf(os.Stdout, format+"\n", args...) }

func writerPrefix(w int) string { return fmt.Sprintf("w%d/", w) }

func (l *life) write(db *flashdb.DB, c *flashdb.Collection, w int) {
	a := newGenerator(writerPrefix(w), l.Seed+uint64(w)).skipTo(l.Done[w])
	for range l.Writes {
		write := a.next()
		say("try %d", w)
		var err error
		if w == 0 {
			err = write.applyBoth(context.Background(), db, a.m, "c", "twin")
		} else {
			err = write.do(context.Background(), c)
		}
		if err != nil {
			say("error %s: %v", write.name, err)
			return
		}
		say("ack %d", w)
		a.applied(write)
	}
}

// chores does what a database has done to it beside writes. Errors are not reported: the disk may
// fail, and the state is compared afterwards.
func (l *life) chores(db *flashdb.DB, c *flashdb.Collection, over *atomic.Bool) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(l.Seed, uint64(l.Done[0])))
	for !over.Load() {
		switch rng.IntN(13) {
		case 0, 1:
			if res, err := c.Rebuild(ctx, &flashdb.RebuildOptions{Force: true, Lists: 3}); err == nil && res.Built {
				say("generation %d", res.Generation)
			}
		case 2:
			_, _ = db.Stats(ctx)
		case 3:
			_, _ = c.Search(ctx, randomVector(rng, modelDim), 5, nil)
		case 4:
			_, _ = db.Check(ctx)
		case 5:
			if other, err := db.CreateCollection("other", flashdb.Schema{Dim: 2}); err == nil {
				_ = other.Upsert(ctx, flashdb.Node{Key: "a", Embedding: []float32{1, 2}})
				_, _ = other.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
			}
			_ = db.DropCollection(ctx, "other")
		case 6:
			_, _ = db.Compact(ctx, nil)
		case 7:
			_, _ = db.Backup(ctx, io.Discard, nil)
		case 8:
			_, _ = c.Calibrate(ctx, &flashdb.CalibrateOptions{Sources: 4})
		case 9:
			if res, err := c.Rebuild(ctx, &flashdb.RebuildOptions{NewerOnly: true}); err == nil && res.Built {
				say("segment")
			}
		default:
			if err := anyRelease(ctx, db, rng); err != nil && l.Point == "" {
				say("error release: %v", err)
			}
		}
	}
}

// A saga is one database over many lives, and what it acknowledged.
type saga struct {
	t          *testing.T
	life       life
	generation uint64
	created    bool
	acked      [writers]int64 // in the last life
	tried      [writers]int64
	errors     []string // of the last life
	value      int      // of the live release, acknowledged
	tryValue   int      // that it may have become
	closed     bool
	segments   int
	total      int64 // writes acknowledged in all lives
}

func newSaga(t *testing.T, dir string, seed uint64) *saga {
	return &saga{t: t, life: life{Dir: dir, Seed: seed, Writes: 40}}
}

// run lives once: as the child of command, if that is not empty, and at most until the child has
// said lines lines, if that is not 0.
func (s *saga) run(lines int, command ...string) {
	s.acked, s.tried, s.errors, s.closed = [writers]int64{}, [writers]int64{}, nil, false
	spec, err := json.Marshal(s.life)
	require.NoError(s.t, err)
	self, err := os.Executable()
	require.NoError(s.t, err)
	args := append(command, self)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), childEnv+"="+string(spec))
	cmd.Env = append(cmd.Env, "GORACE=atexit_sleep_ms=10") // else a child of a race build waits a second before it exits
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, cmd.Start())
	in := bufio.NewScanner(out)
	for n := 1; in.Scan(); n++ { // to the end: what was said before the kill counts
		s.hear(in.Text())
		if n == lines {
			require.NoError(s.t, cmd.Process.Kill())
		}
	}
	require.NoError(s.t, in.Err())
	err = cmd.Wait()
	require.Empty(s.t, stderr.String(), "%v: a child that panics, or a race", err)
}

func (s *saga) hear(line string) {
	word, rest, _ := strings.Cut(line, " ")
	n, _ := strconv.Atoi(rest)
	switch word {
	case "open":
		s.created = true
	case "try":
		s.tried[n]++
	case "ack":
		s.acked[n]++
		s.total++
	case "segment":
		s.segments++
	case "generation":
		s.generation = uint64(n)
	case "error":
		s.errors = append(s.errors, rest)
	case "value":
		if of, ok := strings.CutPrefix(rest, "try "); ok {
			s.tryValue, _ = strconv.Atoi(of)
		} else {
			s.value, _ = strconv.Atoi(strings.TrimPrefix(rest, "is "))
		}
	case "closed":
		s.closed = true
	default:
		require.Fail(s.t, "child said", line)
	}
}

// verify opens the database and compares it with what was acknowledged.
func (s *saga) verify() {
	if all := s.verifyOpen(); all != nil {
		s.verifyRecorded(all)
	}
}

// verifyOpen returns what the collections hold that are written to, or nil if they are not there.
func (s *saga) verifyOpen() map[string]*model {
	ctx := context.Background()
	db, err := flashdb.Open(s.life.Dir, &flashdb.Options{CalibrateTime: -1})
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, db.Close()) }()
	findings, err := db.Check(ctx)
	require.NoError(s.t, err)
	require.Empty(s.t, findings)
	c, err := db.Collection("c")
	var twin *flashdb.Collection
	if err == nil {
		twin, err = db.Collection("twin")
	}
	if err != nil {
		require.ErrorIs(s.t, err, flashdb.ErrNotFound)
		require.False(s.t, s.created)
		return nil
	}
	all, like := newModel(), newModel()
	for w := range writers {
		done := int64(s.life.Done[w])
		a := replayed(s.t, c, writerPrefix(w), s.life.Seed+uint64(w), done+s.acked[w], done+s.tried[w])
		s.life.Done[w] = a.done
		all.merge(a.m)
		if w == 0 {
			like = a.m.linkedFrom("c")
			require.NoError(s.t, like.diff(ctx, twin, ""), "both have what a batch did, or none")
		}
	}
	stats, err := db.Stats(ctx)
	require.NoError(s.t, err)
	for _, col := range stats.Collections {
		if col.Name == "c" {
			require.GreaterOrEqual(s.t, col.Generation, s.generation)
		}
	}
	all.predictsLike(s.t, c)
	s.verifyReleases(ctx, s.t, db)
	return map[string]*model{"c": all, "twin": like}
}

// predictsLike compares queries by inner product with an exact scan.
func (m *model) predictsLike(t *testing.T, c *flashdb.Collection) {
	t.Helper()
	d := dotDecoder(t, modelDim)
	require.NoError(t, c.PutDecoder(context.Background(), "dot", d))
	m.predicts(t, c, d, "dot", 3)
}

// envInt returns the number in an environment variable, or short.
func envInt(t *testing.T, name string, short int) int {
	v := cmp.Or(os.Getenv(name), strconv.Itoa(short))
	n, err := strconv.Atoi(v)
	require.NoError(t, err, name)
	return n
}

// seed returns the number that a random test begins with, and says how to run the same again.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := envInt(t, "FLASHDB_SEED", int(rand.Uint32()))
	t.Logf("FLASHDB_SEED=%d runs this again", n)
	return uint64(n)
}

// TestKill kills processes that write, rebuild and flush: at every failpoint, and wherever they are
// when their parent has read some lines. FLASHDB_KILLS says how many times.
func TestKill(t *testing.T) {
	kills := envInt(t, "FLASHDB_KILLS", len(failpoint.Points()))
	const livesPerSaga = 40
	first := seed(t)
	rng := rand.New(rand.NewPCG(first, 0))
	points := failpoint.Points()
	from := rng.IntN(len(points)) // few kills do not reach all of them
	root := t.TempDir()
	reached := map[failpoint.Point]int{}
	var s *saga
	var writes int64
	instants, survived, segments := 0, 0, 0
	for i := 0; survived < kills; i++ {
		require.Less(t, i, 4*kills, "too few lives end in a kill")
		if i%livesPerSaga == 0 {
			s = newSaga(t, filepath.Join(root, fmt.Sprint(i)), first+uint64(i))
		}
		before, segmentsBefore := s.total, s.segments
		lines := 0
		s.life.Point, s.life.Nth = "", 0
		if i%2 == 0 {
			s.life.Point, s.life.Nth = points[(from+i/2)%len(points)], 1+rng.Int64N(4)
			if strings.HasPrefix(string(s.life.Point), "open.") {
				s.life.Nth = 1
			}
		} else {
			lines = 1 + rng.IntN(200)
		}
		s.run(lines)
		require.Empty(t, s.errors)
		s.verify()
		writes += s.total - before
		segments += s.segments - segmentsBefore
		switch {
		case s.closed: // it was not reached, or the kill came late
			continue
		case lines > 0:
			instants++
		default:
			reached[s.life.Point]++
		}
		survived++
	}
	attempts.Count(t, survived, "processes killed")
	attempts.Count(t, int(writes), "acknowledged batches compared")
	t.Logf("%d kills survived, %d at instants and at failpoints %v; %d acknowledged writes, all there; %d segments acknowledged, and others built in the background",
		survived, instants, reached, writes, segments)
}
