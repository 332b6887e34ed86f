package flashdb

import (
	"log/slog"
	"time"
)

// An EventListener is told what happens inside an open database; Options.Logger is told the same,
// progress aside. Nil functions are passed over.
//
// Functions are called on the goroutine of what happens, some while others wait for it: they must
// return soon, must not call the database, and may run concurrently with each other.
type EventListener struct {
	// RebuildStarted and RebuildFinished enclose every rebuild that has something to do, whoever
	// asked for it. One that cannot even look has an end and no start.
	RebuildStarted  func(RebuildStarted)
	RebuildProgress func(RebuildProgress)
	RebuildFinished func(RebuildFinished)
	// IndexUnusable means exact scans until the next rebuild.
	IndexUnusable func(IndexUnusable)
	// TornTail is told by Open, after a crash.
	TornTail func(TornTail)
	// Flushed follows each move from the log into the bbolt file in the background.
	Flushed func(Flushed)
	// WritesRefused is told once, when the log or the bbolt file cannot be written any more.
	WritesRefused func(WritesRefused)
}

// RebuildStarted begins a rebuild.
type RebuildStarted struct {
	Collection string
	Generation uint64 // to be built
}

// RebuildProgress says how far a rebuild is. Total is 0 when nobody knows.
type RebuildProgress struct {
	Collection  string
	Stage       string
	Done, Total int64
}

// RebuildFinished ends a rebuild. On an error, ErrQuality's, ErrClosed's and a context's among
// them, the earlier generation stays served.
type RebuildFinished struct {
	Collection string
	Result     RebuildResult
	Err        error
}

// IndexUnusable says that the served generation could not be opened, or turned out damaged while it
// was served.
type IndexUnusable struct {
	Collection string
	Generation uint64
	Err        error
}

// TornTail says what was cut off the log: bytes that a crash left, and that nobody was told are
// durable.
type TornTail struct {
	File          string
	Offset, Bytes int64
}

// Flushed says that batches up to LSN are in the bbolt file, or why they are not: then the log
// keeps what was acknowledged.
type Flushed struct {
	LSN     uint64
	Elapsed time.Duration
	Err     error
}

// WritesRefused says why the database takes no writes until it is reopened.
type WritesRefused struct{ Err error }

// events tells the listener and the log, and counts. There is one place for each event.
type events struct {
	listener EventListener
	log      *slog.Logger
	dir      string
	metrics  *metrics
}

func tell[E any](fn func(E), e E) {
	if fn != nil {
		fn(e)
	}
}

func (ev *events) rebuildStarted(e RebuildStarted) {
	ev.log.Info("rebuild started", "dir", ev.dir, "collection", e.Collection, "generation", e.Generation)
	tell(ev.listener.RebuildStarted, e)
}

func (ev *events) rebuildProgress(e RebuildProgress) { tell(ev.listener.RebuildProgress, e) }

func (ev *events) rebuildFinished(e RebuildFinished) {
	outcome(&ev.metrics.rebuilds, &ev.metrics.rebuildErrors, e.Err)
	r := e.Result
	if e.Err == nil {
		ev.log.Info("rebuilt", "dir", ev.dir, "collection", e.Collection, "generation", r.Generation, "rows", r.Rows, "lists", r.Lists, "bytes", r.Bytes, "seconds", r.Elapsed.Seconds())
	} else {
		ev.log.Warn("not rebuilt: the earlier index stays", "dir", ev.dir, "collection", e.Collection, "err", e.Err)
	}
	tell(ev.listener.RebuildFinished, e)
}

func (ev *events) indexUnusable(e IndexUnusable) {
	ev.metrics.indexesUnusable.Add(1)
	ev.log.Warn("index not usable: exact scan until the next rebuild", "dir", ev.dir, "collection", e.Collection, "generation", e.Generation, "err", e.Err)
	tell(ev.listener.IndexUnusable, e)
}

func (ev *events) tornTail(e TornTail) {
	ev.log.Warn("cut off a torn log tail: a crash left it, and nobody was told it is durable", "dir", ev.dir, "file", e.File, "offset", e.Offset, "bytes", e.Bytes)
	tell(ev.listener.TornTail, e)
}

func (ev *events) flushed(e Flushed) {
	outcome(&ev.metrics.flushes, &ev.metrics.flushErrors, e.Err)
	if e.Err != nil {
		ev.log.Error("flush failed; the log keeps what was acknowledged", "dir", ev.dir, "err", e.Err)
	} else {
		ev.log.Debug("flushed", "dir", ev.dir, "lsn", e.LSN, "seconds", e.Elapsed.Seconds())
	}
	tell(ev.listener.Flushed, e)
}

func (ev *events) writesRefused(e WritesRefused) {
	ev.log.Error("the log cannot be written: read-only until reopened", "dir", ev.dir, "err", e.Err)
	tell(ev.listener.WritesRefused, e)
}
