// Package storage is the durable truth of a flashdb database: nodes, rows, links, tags and decoders
// in one bbolt file, under an overlay in memory of the changes that the log holds and bbolt does
// not hold yet.
//
// # The path of a change
//
// A change is a list of [Op] with all keys resolved to ids. The caller applies it to a [Changes],
// writes [EncodeOps] of it to its log, and once the log is synced makes it visible. Many changes
// may share one sync:
//
//	c := store.Begin()           // sees everything staged so far
//	err := c.Apply(op, lsn)      // once for each operation; the lsn of the log record
//	store.Stage(c)               // later Begins see it, readers do not
//	...                          // more changes, then one sync of the log
//	store.Publish()              // readers see all that was staged, at once
//	applied, err := store.Flush()  // now and then: overlay -> bbolt, one synced transaction
//
// After Flush the log may forget every record up to applied. After a crash the caller replays the
// records above [Store.Applied] through the same calls. If the log's sync fails, [Store.Discard]
// forgets what was staged.
//
// # Concurrency
//
// Begin, Apply, the getters of Changes, Stage, Publish and Discard belong to the writer: one
// goroutine at a time, by a lock of the caller's. [Store.View] and the streams [Store.Rows] and
// [Store.Dirty] may run at any time, beside anything. [Store.Flush], [Store.PublishGeneration],
// [Store.Snapshot], [Store.Compact], [Store.Check], [Store.PutStagedRows], [Store.PutEmbeddedRows],
// [Store.PutStaged] and [Store.Purge] wait for each other and may run beside the readers and the
// writer. The calls that change which releases there are need the writer kept out: see
// [Store.StageRelease].
//
// A View is a snapshot: it sees every change published before it began and none published later,
// whatever is flushed meanwhile. The overlay is a short list of immutable layers, so a reader needs
// no lock. It takes the list first and then opens a bbolt transaction. So it misses nothing of a
// flush that commits in between, because it still holds the layers just written. A flush that
// started in between may have written more than those layers. The reader notices that and starts
// again (see [Store.View]).
//
// A [Pin] is a View as of one point in time that lasts until it is closed. A transaction of bbolt
// that lasts stops every commit that has to map the file anew, and then every reader. So a Pin
// holds the lock on the mapping only while it is read.
//
// # Releases
//
// A node owns its key, tags, attributes, payload and links. A release owns rows, decoders, plans,
// encoder and generation. What it has of one collection is a set. One set of each collection is
// live: it is what a View sees, and what changes of the log are about. Other sets belong to staged
// releases or to the former one. A staged release is filled beside the log, by transactions of its
// own.
//
// To publish a release is to exchange the sets of its collections with those of the release, in one
// transaction. The overlay is empty then, so that what it holds later is of the sets that are live
// then. No row is read or written. Views that began before go on with the sets from before: nothing
// is removed from those.
//
// # Layout of the bbolt file
//
// Ids are dense, counted from 0 inside a collection, and never reused. UIDs number collections from
// 1 and are never reused either. Keys that are numbers are big-endian, so that bbolt's order is
// theirs; all other numbers are little-endian, and varints are those of encoding/binary. A string
// or blob is its length as a varint and its bytes.
//
// Every value but that of format is sealed, those of rows in pieces: the last 4 bytes are the
// CRC32C of what names it (the UID, 4 bytes, 0 for the top buckets; the name of the bucket, empty
// for info, index and tombs; the key) and of the bytes before. bbolt has no checksums of its own:
// without these, a bit that flips in a row would change answers unnoticed. A value that is read and
// fails its checksum is a format.CorruptError with the collection, bucket and key, and the offset
// in the file.
//
// A file keeps the version of the layout that it was created with, and is always read and written
// by that, Compact included. Version 1 has no seals. Up to version 2 the keys of rows and dirty are
// ids, and their values are one row, and one LSN as a uint64. Version 4 is version 3 with links to
// other collections, and version 5 is version 4 with links that have a relation: a file is created
// with version 3, and the first of these links raises it to version 4 or 5. Version 6 is version 5
// with attributes of nodes, version 7 is version 6 with releases, and version 8 is version 7 with
// index segments, the first of which raises it. Version 9 is version 8 with the times of new links,
// or of the cut of a release. Files of version 1 and 2 cannot have such links, nor attributes, nor
// releases, nor segments.
//
//	meta                       format   -> uint32  version of this layout, 3 to 9
//	                           applied  -> uint64  LSN of the last change in this file
//	                           next     -> uint32  UID of the next collection
//	names                      name     -> uint32  UID
//	c
//	└─ UID (4 bytes)           info     -> see below
//	   │                       index    -> see below; absent: no generation was published
//	   │                       tombs    -> roaring bitmap of the deleted ids; absent: none
//	   ├─ ids                  key      -> uint32  id
//	   ├─ keys                 id       -> see below
//	   ├─ rows                 block    -> rows of the ids n*size to (n+1)*size-1, for block n; see below for size
//	   ├─ dirty                block    -> LSNs of those rows, among 64 ids, that are newer than the published generation
//	   ├─ links                id       -> roaring bitmap of the ids it is linked to, deleted ones included
//	   ├─ across               UID, id  -> roaring bitmap of the ids of collection UID that id is linked to, likewise
//	   ├─ typed                UID, id  -> links that have a relation, between id and ids of collection UID, its own or another; see below
//	   ├─ recent               LSN      -> links to ids of this collection that the change recorded with a time; see below
//	   ├─ tags                 tag      -> roaring bitmap of the ids that carry it
//	   ├─ attributes           name, 0  -> kind, 1 byte; number of nodes that have it, varint
//	   │                       name, 0, column -> values of the ids n*1024 to (n+1)*1024-1, for column n; see column.go
//	   ├─ decoders             name     -> blob of package decoder
//	   ├─ meta                 name     -> string of the user's
//	   └─ plans                decoder  -> blob of package internal/calibrate: derived, what was measured of query plans
//
// and from version 7 on
//
//	c
//	└─ UID (4 bytes)           set      -> uint32  UID of the live set; absent: that of the collection
//	sets
//	└─ UID (4 bytes)           index    -> as in c, of the set
//	   │                       held     -> roaring bitmap of the ids that have a row in the set
//	   │                       embedded -> roaring bitmap of the ids whose row was computed from links; absent: none. A
//	   │                                   release that is live may state some that have another row since
//	   └─ rows, dirty, decoders, plans, and of meta the values of the encoder: as in c
//	releases                   name     -> see below
//
// The first set of a collection has the UID of the collection, and its buckets, index and held lie
// in the bucket of the collection as before. Without held each live id has a row in it. UIDs of
// sets are counted with those of collections. A set is sealed under its own UID, so that nothing of
// it changes when it becomes live.
//
//	index: generation, varint | build LSN, varint | from version 8 on, where it has segments: their number, varint | number
//	       and LSN of each, varints, from the oldest on
//
//	info:  +-------------+-------------------+--------------+----------------+-------------+
//	       | dim, varint | flags, 1 byte     | live, varint | next id,       | name,       |
//	       |             | bit 0: normalize  | nodes        | varint         | string      |
//	       +-------------+-------------------+--------------+----------------+-------------+
//	       | only where nodes are, or were, linked to nodes of other collections, or with  |
//	       | a relation from them:                                                         |
//	       | the number of these collections, varint; their UIDs, varints                  |
//	       +-------------------------------------------------------------------------------+
//	keys:  +-------------+-------------------+--------------+----------------+
//	       | key, string | number of tags,   | tags, sorted | payload: the   |
//	       |             | varint            | strings      | rest           |
//	       +-------------+-------------------+--------------+----------------+
//	rows:  +-------------+-------------------+--------------+----------------+
//	       | mask,       | seal of the mask  | dim x        | seal of the    | ... the last two for each id whose
//	       | uint64      |                   | float32      | row            |     bit is set, in order
//	       +-------------+-------------------+--------------+----------------+
//	dirty: +-------------+-------------------+
//	       | mask,       | LSN, uint64: one for all ids whose bit is set, or one for each
//	       | uint64      |                   |
//	       +-------------+-------------------+
//
//	typed: +-------------+-------------------+--------------+----------------+
//	       | number,     | relation, string  | direction,   | roaring bitmap | ... the last three for each relation
//	       | varint      |                   | 1 byte       | of ids, blob   |     and direction, ascending
//	       +-------------+-------------------+--------------+----------------+
//
//	recent: from version 9 on
//	       +-------------+-------------------+--------------+----------------+--------------+----------------+
//	       | number of   | recorded at,      | UID of the   | relation,      | source id,   | number of      | ... the last four for
//	       | links,      | varint, s         | sources'     | string, may be | varint       | targets,       |     each source and
//	       | varint      | since 1970        | collection,  | empty          |              | varint; their  |     relation
//	       |             |                   | varint       |                |              | ids, varints   |
//	       +-------------+-------------------+--------------+----------------+--------------+----------------+
//
//	releases:
//	       +-------------+-------------------+--------------+----------------+
//	       | number,     | state, 1 byte:    | staged at,   | published at,  |
//	       | varint      | 1 staged, 2 live, | varint, s    | varint, s      |
//	       |             | 3 former, 4       | since 1970   | 0: never       |
//	       |             | dropped           |              |                |
//	       +-------------+-------------------+--------------+----------------+
//	       | number of sets, varint; the UID of the collection and that of   |
//	       | its set, varints, for each; none of the live release            |
//	       +-----------------------------------------------------------------+
//	       | only where it is not when it was staged, from version 9 on:     |
//	       | when its data was cut, varint, s since 1970                     |
//	       +-----------------------------------------------------------------+
//
// While a database has releases, a link that was not there before is also listed in recent, with
// the time. Nothing is taken out of the list but the oldest: a link in it may be gone.
//
// A link with a relation is kept at both of its ends: at the source with direction 0, at the target
// with direction 1, in reverse.
//
// Bit i of a mask is for the i-th id of the block. A row is sealed under its id as the key, so that
// reading one does not read its whole block; a block of rows has no seal over all of it.
//
// Rows and LSNs lie in blocks because bbolt pays for every entry: a search from the root, a place
// in a sorted list, a checksum and 20 bytes. One entry per row was a third of the cost of an
// import. A block of more than one row is no larger than half a page of 8 KiB, so that a row that
// changes alone still costs one page: size is 15 for 64 dimensions, 5 for 128, and 1 for wide rows,
// see rowsPerBlock. A block without ids is removed. LSNs are those of batches, so that most blocks
// state one.
//
// Buckets of a collection are made when first needed; a missing one is empty. Invariants, verified
// by [Store.Check]:
//
//  1. names and the buckets in c name each other;
//  2. an id is live, that is in keys and in rows, if and only if it is below next id and not in
//     tombs; see 14 for rows;
//  3. ids maps the key of each live id to it, and nothing else;
//  4. tags holds an id under a tag if and only if its node says so; no bitmap of links, across,
//     typed or tags is empty;
//  5. links, across, typed and dirty hold live ids; linked ids are below next id of their
//     collection;
//  6. no LSN in dirty or index exceeds applied; those in index ascend, and no two of its files have
//     one number;
//  7. the sequence of the buckets links, across, typed, recent, attributes, decoders and meta, which
//     nothing else vouches for, is the number of their entries (from version 2 on);
//  8. plans has names of decoders as keys;
//  9. the mask of a block of rows or dirty is not 0 and has no bit beyond the block, and the value
//     has the length it states (from version 3 on);
//  10. the collections that across and typed lead to exist, and info names them: links to a
//     collection end in the transaction that drops it (from version 4 on);
//  11. of two live nodes, typed has a link between them at both or at neither (from version 5 on);
//  12. the columns of an attribute hold values of its kind, ascending and without duplicates, of live
//     ids, as many as it says; no column is empty (from version 6 on);
//  13. each set is that of one collection or of one release, and none is that of two; one release
//     is live (from version 7 on);
//  14. rows of the live set holds the ids in held, where there is one, in place of all live ids;
//     rows of another set holds those ids in held that are live; 5 to 9 hold for each set;
//  15. recent holds 1 to 20,000 links of each change up to applied, of nodes that exist or once did,
//     and no change without which 20,000 remain (from version 9 on).
//
// [EncodeOps] documents the second format of this package, what the log records hold.
package storage
