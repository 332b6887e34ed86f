// Package failpoint names the points of the program between which a crash leaves different states
// on disk. A test hooks them, to kill the process there or to look at what is on disk; without a
// hook, reaching one costs an atomic load.
//
// Its functions may be called from any goroutine.
package failpoint

import (
	"slices"
	"sync/atomic"
)

// A Point is one named moment. Its name says what comes next, or what was done last.
type Point string

// The moments, in the order in which a database meets them.
const (
	WALAppend  Point = "wal.append"  // a group is prepared, nothing of it written
	WALSync    Point = "wal.sync"    // its frames are written, not synced
	WALDurable Point = "wal.durable" // they are synced, nobody has been told
	WALRotate  Point = "wal.rotate"  // a new segment is synced, its name is not
	WALDrop    Point = "wal.drop"    // before a segment is removed
	WALDropped Point = "wal.dropped" // it is removed, the directory not synced

	FlushBefore Point = "flush.before" // nothing is written to bbolt
	FlushWrite  Point = "flush.write"  // all is put into a transaction of bbolt, which has not committed
	FlushAfter  Point = "flush.after"  // bbolt has committed, the log keeps its segments

	IndexSync    Point = "index.sync"    // a generation is written, not synced
	IndexRename  Point = "index.rename"  // synced, under its temporary name
	IndexRenamed Point = "index.renamed" // renamed, the directory not synced

	PublishBefore Point = "publish.before" // the generation is checked, nothing says it is served
	PublishAfter  Point = "publish.after"  // bbolt says so, queries still use the one before
	PublishRemove Point = "publish.remove" // before the one before is removed

	CompactRename  Point = "compact.rename"  // the copy of the bbolt file is whole and synced, under its temporary name
	CompactRenamed Point = "compact.renamed" // it is renamed, the directory not synced

	ReleaseFill  Point = "release.fill"  // a batch is put into a transaction of bbolt, which has not committed
	ReleaseWrite Point = "release.write" // what is live or staged changes in a transaction, which has not committed
	ReleaseAfter Point = "release.after" // bbolt has committed it, queries still use what was live before
	ReleasePurge Point = "release.purge" // the rows of a collection are taken from a dropped release

	DropRemove Point = "drop.remove" // a collection is dropped, its index is there

	OpenReplay Point = "open.replay" // the log is open, nothing replayed
	OpenSweep  Point = "open.sweep"  // all is replayed, nothing swept
)

var points = []Point{
	WALAppend, WALSync, WALDurable, WALRotate, WALDrop, WALDropped, FlushBefore, FlushWrite, FlushAfter, IndexSync, IndexRename,
	IndexRenamed, PublishBefore, PublishAfter, PublishRemove, CompactRename, CompactRenamed,
	ReleaseFill, ReleaseWrite, ReleaseAfter, ReleasePurge, DropRemove, OpenReplay, OpenSweep,
}

// Points returns all points.
func Points() []Point { return slices.Clone(points) }

var hook atomic.Pointer[func(Point)]

// Hook has fn called whenever a point is reached, by the goroutine that reaches it. Nil ends that.
func Hook(fn func(Point)) {
	if fn == nil {
		hook.Store(nil)
		return
	}
	hook.Store(&fn)
}

// Reach tells the hook, if there is one, that p is reached.
func (p Point) Reach() {
	if fn := hook.Load(); fn != nil {
		(*fn)(p)
	}
}
