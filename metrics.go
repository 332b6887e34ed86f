package flashdb

import (
	"sync/atomic"
	"time"
)

// Metrics count what a database has done since Open. All counts but OpenSnapshots only grow. A
// program can publish them as JSON:
//
//	expvar.Publish("flashdb", expvar.Func(func() any { return db.Metrics() }))
type Metrics struct {
	// Predicts and Searches count queries that were answered, and QueryErrors those that failed.
	// Each query of a PredictBatch counts. ExactScans counts the answered queries that ran no
	// search and scored every node that their filters allow.
	Predicts, Searches, QueryErrors, ExactScans uint64
	// Sums over the answered queries: see QueryStats.
	Rounds, ListsProbed, CodesScanned, RowsScored uint64
	// QuerySeconds are the times of the answered queries.
	QuerySeconds Histogram

	// Writes counts durable atomic writes. WriteErrors counts those that failed, and those that a
	// read-only database refused. WriteSeconds are the times until a write was durable, with its
	// wait for the group that it was synced with.
	Writes, WriteErrors uint64
	WriteSeconds        Histogram

	// Flushes counts the background flushes into the bbolt file, and Rebuilds the new generations
	// that were served. The errors count those that failed.
	Flushes, FlushErrors, Rebuilds, RebuildErrors uint64
	// IndexesUnusable counts generations that could not be served.
	IndexesUnusable uint64

	// Publishes counts releases that became live by Publish, and Rollbacks those that did by
	// Rollback. PublishErrors counts calls of Publish that failed or were refused.
	Publishes, PublishErrors, Rollbacks uint64
	// OpenSnapshots is how many Snapshots are not closed now. Each keeps space from being used
	// again.
	OpenSnapshots uint64
}

// A Histogram counts durations in seconds.
type Histogram struct {
	// Counts[i] counts durations of at most Bounds[i] and more than Bounds[i-1]. The last count has
	// no bound: it counts those above all bounds.
	Bounds []float64
	Counts []uint64
	Sum    float64
}

// Count returns how many durations there are.
func (h Histogram) Count() (n uint64) {
	for _, c := range h.Counts {
		n += c
	}
	return n
}

// Metrics returns the counts so far. It never waits. The counts are not of one instant: an event
// that happens meanwhile may be in one count and not yet in another.
func (db *DB) Metrics() Metrics {
	m := &db.metrics
	return Metrics{
		Predicts:        m.predicts.Load(),
		Searches:        m.searches.Load(),
		QueryErrors:     m.queryErrors.Load(),
		ExactScans:      m.exactScans.Load(),
		Rounds:          m.rounds.Load(),
		ListsProbed:     m.listsProbed.Load(),
		CodesScanned:    m.codesScanned.Load(),
		RowsScored:      m.rowsScored.Load(),
		QuerySeconds:    m.queryTimes.read(),
		Writes:          m.writes.Load(),
		WriteErrors:     m.writeErrors.Load(),
		WriteSeconds:    m.writeTimes.read(),
		Flushes:         m.flushes.Load(),
		FlushErrors:     m.flushErrors.Load(),
		Rebuilds:        m.rebuilds.Load(),
		RebuildErrors:   m.rebuildErrors.Load(),
		IndexesUnusable: m.indexesUnusable.Load(),
		Publishes:       m.publishes.Load(),
		PublishErrors:   m.publishErrors.Load(),
		Rollbacks:       m.rollbacks.Load(),
		OpenSnapshots:   uint64(max(0, m.openSnapshots.Load())),
	}
}

// metrics are the counters behind Metrics.
type metrics struct {
	predicts, searches, queryErrors, exactScans   atomic.Uint64
	rounds, listsProbed, codesScanned, rowsScored atomic.Uint64
	writes, writeErrors                           atomic.Uint64
	flushes, flushErrors, rebuilds, rebuildErrors atomic.Uint64
	indexesUnusable                               atomic.Uint64
	publishes, publishErrors, rollbacks           atomic.Uint64
	openSnapshots                                 atomic.Int64
	queryTimes, writeTimes                        durations
}

// query counts one query of a kind, and its cost if it was answered.
func (m *metrics) query(kind *atomic.Uint64, s *QueryStats, err error) {
	if err != nil {
		m.queryErrors.Add(1)
		return
	}
	kind.Add(1)
	if s.Stop == StopExact {
		m.exactScans.Add(1)
	}
	m.rounds.Add(uint64(s.Rounds))
	m.listsProbed.Add(uint64(s.ListsProbed))
	m.codesScanned.Add(uint64(s.CodesScanned))
	m.rowsScored.Add(uint64(s.RowsScored))
	m.queryTimes.add(s.Elapsed)
}

// write counts one attempt to write.
func (m *metrics) write(elapsed time.Duration, err error) {
	if err != nil {
		m.writeErrors.Add(1)
		return
	}
	m.writes.Add(1)
	m.writeTimes.add(elapsed)
}

// outcome counts something that ended well or not.
func outcome(done, failed *atomic.Uint64, err error) {
	if err != nil {
		failed.Add(1)
		return
	}
	done.Add(1)
}

// bounds are the bounds of a Histogram: 1, 2 and 5 times powers of ten, from 50 us to 50 s.
var bounds = [...]time.Duration{
	50 * time.Microsecond, 100 * time.Microsecond, 200 * time.Microsecond, 500 * time.Microsecond,
	1 * time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond,
	10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond,
	1 * time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second, 50 * time.Second,
}

// durations is the counter behind Histogram.
type durations struct {
	counts [len(bounds) + 1]atomic.Uint64
	nanos  atomic.Int64
}

func (d *durations) add(x time.Duration) {
	i := 0
	for i < len(bounds) && x > bounds[i] {
		i++
	}
	d.counts[i].Add(1)
	d.nanos.Add(int64(x))
}

func (d *durations) read() Histogram {
	h := Histogram{Sum: time.Duration(d.nanos.Load()).Seconds()}
	for i := range d.counts {
		h.Counts = append(h.Counts, d.counts[i].Load())
	}
	for _, bound := range bounds {
		h.Bounds = append(h.Bounds, bound.Seconds())
	}
	return h
}
