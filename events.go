package flashdb

import (
	"log/slog"
	"time"

	"github.com/flashdb/flashdb/wal"
)

// events logs what happens inside an open database, and counts it. Each event has one method. See
// Options.Logger.
type events struct {
	log     *slog.Logger
	dir     string
	metrics *metrics
}

func (ev *events) rebuildStarted(collection string, generation uint64) {
	ev.log.Info("rebuild started", "dir", ev.dir, "collection", collection, "generation", generation)
}

// rebuildFinished reports the end of a rebuild. After an error the earlier generation stays served.
// ErrQuality, ErrClosed and the error of a context are such errors.
func (ev *events) rebuildFinished(collection string, r RebuildResult, err error) {
	outcome(&ev.metrics.rebuilds, &ev.metrics.rebuildErrors, err)
	if err == nil {
		ev.log.Info("rebuilt", "dir", ev.dir, "collection", collection, "generation", r.Generation, "rows", r.Rows, "lists", r.Lists, "bytes", r.Bytes, "seconds", r.Elapsed.Seconds())
	} else {
		ev.log.Warn("not rebuilt: the earlier index stays", "dir", ev.dir, "collection", collection, "err", err)
	}
}

// segmentsMerged reports that segments have become one of so many rows, and how many there are now.
func (ev *events) segmentsMerged(collection string, rows, segments int, elapsed time.Duration) {
	ev.log.Info("segments merged", "dir", ev.dir, "collection", collection, "rows", rows, "segments", segments, "seconds", elapsed.Seconds())
}

// segmentBuilt reports that newer rows are indexed now.
func (ev *events) segmentBuilt(collection string, rows, segments int, elapsed time.Duration) {
	ev.log.Info("newer rows indexed", "dir", ev.dir, "collection", collection, "rows", rows, "segments", segments, "seconds", elapsed.Seconds())
}

// indexUnusable reports that the served generation could not be opened, or was found damaged while
// it was served.
func (ev *events) indexUnusable(collection string, generation uint64, err error) {
	ev.metrics.indexesUnusable.Add(1)
	ev.log.Warn("index not usable: exact scan until the next rebuild", "dir", ev.dir, "collection", collection, "generation", generation, "err", err)
}

func (ev *events) tornTail(t *wal.Torn) {
	ev.log.Warn("cut off a torn log tail: a crash left it, and nobody was told it is durable", "dir", ev.dir, "file", t.File, "offset", t.Offset, "bytes", t.Bytes)
}

// flushed reports that batches up to lsn are in the bbolt file, or why they are not. The log then
// keeps what was acknowledged.
func (ev *events) flushed(lsn uint64, elapsed time.Duration, err error) {
	outcome(&ev.metrics.flushes, &ev.metrics.flushErrors, err)
	if err != nil {
		ev.log.Error("flush failed; the log keeps what was acknowledged", "dir", ev.dir, "err", err)
	} else {
		ev.log.Debug("flushed", "dir", ev.dir, "lsn", lsn, "seconds", elapsed.Seconds())
	}
}

// writesRefused reports, once, that the log or the bbolt file can no longer be written.
func (ev *events) writesRefused(err error) {
	ev.log.Error("writes are refused: read-only until reopened", "dir", ev.dir, "err", err)
}
