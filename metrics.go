package flashdb

import (
	"sync/atomic"
	"time"
)

// Metrics count what a database has done since Open. All of them only grow. A Metrics marshals to
// JSON, so that a program may publish it by
//
//	expvar.Publish("flashdb", expvar.Func(func() any { return db.Metrics() }))
type Metrics struct {
	// Predicts and Searches are queries that were answered, QueryErrors those that were not, a
	// batch one by one. ExactScans of the former scored every node.
	Predicts, Searches, QueryErrors, ExactScans uint64
	// What the answers cost: see QueryStats.
	Rounds, ListsProbed, CodesScanned, RowsScored uint64
	// QuerySeconds are the times of the answers.
	QuerySeconds Histogram

	// Writes are durable atomic writes, WriteErrors those that failed, refused ones included.
	// WriteSeconds are the times until one was durable, its wait for others in the same group
	// included.
	Writes, WriteErrors uint64
	WriteSeconds        Histogram

	// Flushes into the bbolt file in the background, and rebuilds, with those that failed.
	Flushes, FlushErrors, Rebuilds, RebuildErrors uint64
	// IndexesUnusable counts generations that could not be served.
	IndexesUnusable uint64
}

// A Histogram counts durations in seconds.
type Histogram struct {
	// Counts[i] are those of at most Bounds[i] and more than the bound before; the last count, one
	// more than there are bounds, is of the rest.
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

// Metrics returns the counts so far. It never waits; what is counted meanwhile may be in one count
// and not yet in another.
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
	}
}

// metrics are the counters behind Metrics.
type metrics struct {
	predicts, searches, queryErrors, exactScans   atomic.Uint64
	rounds, listsProbed, codesScanned, rowsScored atomic.Uint64
	writes, writeErrors                           atomic.Uint64
	flushes, flushErrors, rebuilds, rebuildErrors atomic.Uint64
	indexesUnusable                               atomic.Uint64
	queryTimes, writeTimes                        durations
}

// query counts the answer of one query of a kind.
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

// write counts one attempt at a change.
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

// bounds are those of durations: one, two and five of every power of ten that a query or a batch
// may take.
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
