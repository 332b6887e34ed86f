package storage

import (
	"github.com/flashdb/flashdb/internal/attr"
	"github.com/flashdb/flashdb/internal/format"
)

// An Op is one logical change: CreateCollection, DropCollection, PutNode, AddNode, SetTags,
// SetPayload, SetAttributes, DeleteNode, Link, Unlink, PutDecoder, DropDecoder, SetMeta or
// SetPlans. It says by id what to do, so that applying it to the same state always gives the same
// state.
type Op interface {
	// Collection returns the UID of the collection that the operation changes.
	Collection() uint32

	apply(c *Changes, lsn uint64) error
	encode(w *format.Writer)
}

// Schema is what is fixed about a collection when it is created.
type Schema struct {
	Dim       int  // float32s in a row
	Normalize bool // rows are scaled to unit length before they get here
}

// CreateCollection makes an empty collection. UID must be that of [Changes.NextUID], and Name not
// in use.
type CreateCollection struct {
	UID    uint32
	Name   string
	Schema Schema
}

// DropCollection removes a collection and all it holds.
type DropCollection struct {
	UID uint32
}

// PutNode inserts a node, or replaces row, tags, attributes and payload of a live one. A key that
// has no id yet must come with the collection's NextID, any other with its id.
type PutNode struct {
	UID, ID    uint32
	Key        string
	Row        []float32
	Tags       []string     // in any order
	Attributes []attr.Named // each name once
	Payload    []byte
}

// DeleteNode removes a live node: its key, row, tags, attributes and payload, and the links that
// start at it, to whatever collection. Those that end at it stay in place; readers subtract
// [View.Tombs].
type DeleteNode struct {
	UID, ID uint32
}

// Link adds links from a live node to live nodes. Links that exist already are kept. UID is the
// collection of the source. To is the collection of the targets; 0 means UID. Links with a Relation
// are independent of links without one. With a time, in Recorded, those that are new are kept with
// it for RecentLinks.
type Link struct {
	UID, Source, To uint32
	Relation        string
	Targets         []uint32
	Recorded        int64 // seconds since 1970; 0: they are not kept
}

// Unlink removes links. It ignores those that do not exist. UID, To and Relation are as in Link.
type Unlink struct {
	UID, Source, To uint32
	Relation        string
	Targets         []uint32
}

// PutDecoder stores or replaces a decoder's blob. The plans of the decoder that it replaces are
// removed.
type PutDecoder struct {
	UID  uint32
	Name string
	Blob []byte
}

// DropDecoder removes a decoder that exists, with its plans.
type DropDecoder struct {
	UID  uint32
	Name string
}

// SetMeta stores or replaces a string of the user's beside a collection.
type SetMeta struct {
	UID         uint32
	Name, Value string
}

// SetPlans stores or replaces the calibrations of a decoder that exists: a blob of
// internal/calibrate.
type SetPlans struct {
	UID  uint32
	Name string // of the decoder
	Blob []byte
}

// Collection returns o.UID.
func (o CreateCollection) Collection() uint32 { return o.UID }

// Collection returns o.UID.
func (o DropCollection) Collection() uint32 { return o.UID }

// Collection returns o.UID.
func (o PutNode) Collection() uint32 { return o.UID }

// Collection returns o.UID.
func (o DeleteNode) Collection() uint32 { return o.UID }

// Collection returns o.UID.
func (o Link) Collection() uint32 { return o.UID }

// Collection returns o.UID.
func (o Unlink) Collection() uint32 { return o.UID }

// Collection returns o.UID.
func (o PutDecoder) Collection() uint32 { return o.UID }

// Collection returns o.UID.
func (o DropDecoder) Collection() uint32 { return o.UID }

// Collection returns o.UID.
func (o SetMeta) Collection() uint32 { return o.UID }

// Collection returns o.UID.
func (o SetPlans) Collection() uint32 { return o.UID }
