package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/wire"
)

// A call is a remote procedure of a database or of a collection: On says which. It runs in the
// process that has the database open. If that is another process, the request, the items and the
// result are sent as JSON.
//
// To add a call, add one variable made by onDB or onCollection, and the method of Client or
// Collection that makes the call. There is no other list of calls.
type call[On, Req, Item, Res any] struct {
	path   string
	answer func(ctx context.Context, on On, r Req, o reply[Item]) (Res, error)
}

// A reply receives what comes before the result.
type reply[Item any] struct {
	item     func(Item) error // an error of it ends the call
	progress func(stage string, done, total int64)
}

type (
	none struct{}      // stands for an empty request, item or result
	out  = reply[none] // is the reply of a call without items
)

// onDB makes a call of the database.
func onDB[Req, Item, Res any](name string, answer func(context.Context, *flashdb.DB, Req, reply[Item]) (Res, error)) call[*flashdb.DB, Req, Item, Res] {
	return register(name, func(db *flashdb.DB, _ string) (*flashdb.DB, error) { return db, nil }, answer)
}

// onCollection makes a call of a collection.
func onCollection[Req, Item, Res any](name string, answer func(context.Context, *flashdb.Collection, Req, reply[Item]) (Res, error)) call[*flashdb.Collection, Req, Item, Res] {
	return register(anyCollection+"/"+name, collectionAt, answer)
}

// ofRelease stands between the name of a collection and that of a release: "items@night". No name
// holds it.
const ofRelease = "@"

// collectionAt returns the collection that a path names, as the live release has it or another one.
func collectionAt(db *flashdb.DB, place string) (*flashdb.Collection, error) {
	name, release, other := strings.Cut(place, ofRelease)
	if !other {
		return db.Collection(name)
	}
	r, err := db.Release(context.Background(), release)
	if err != nil {
		return nil, err
	}
	return r.Collection(name)
}

// anyCollection stands for the name of a collection in the path of a call.
const anyCollection = "*"

// A handler answers a call that came over the socket.
type handler func(ctx context.Context, db *flashdb.DB, collection string, body []byte, s *stream) (result any, err error)

// calls are the handlers of all calls by their paths.
var calls = map[string]handler{}

func register[On, Req, Item, Res any](path string, find func(*flashdb.DB, string) (On, error), answer func(context.Context, On, Req, reply[Item]) (Res, error)) call[On, Req, Item, Res] {
	if calls[path] != nil {
		panic("control: two calls have the path " + path)
	}
	calls[path] = func(ctx context.Context, db *flashdb.DB, collection string, body []byte, s *stream) (any, error) {
		var r Req
		if len(bytes.TrimSpace(body)) > 0 {
			if err := wire.Decode(body, &r, true); err != nil {
				return nil, badRequest(err)
			}
		}
		on, err := find(db, collection)
		if err != nil {
			return nil, err
		}
		return answer(ctx, on, r, reply[Item]{
			item:     func(item Item) error { return s.item(item) },
			progress: func(stage string, done, total int64) { s.progress(progress{stage, done, total}) },
		})
	}
	return call[On, Req, Item, Res]{path, answer}
}

// badRequest returns the error for a request that cannot be decoded. The error for damaged weights
// is kept.
func badRequest(err error) error {
	if errors.Is(err, flashdb.ErrCorrupt) || errors.Is(err, flashdb.ErrVersion) {
		return err
	}
	return fmt.Errorf("%w: request: %w", flashdb.ErrInvalid, err)
}

// handle answers the call of a path that came over the socket.
func handle(ctx context.Context, db *flashdb.DB, path string, body []byte, s *stream) (any, error) {
	collection, name, ok := strings.Cut(path, "/")
	pattern := path
	if ok {
		pattern = anyCollection + "/" + name
	}
	answer := calls[pattern]
	collection, err := url.PathUnescape(collection)
	if answer == nil || err != nil {
		return nil, &unknownCall{pathPrefix + path}
	}
	result, err := answer(ctx, db, collection, body, s)
	return result, ended(ctx, err)
}

// ended returns the error of a call. For a call that the closing server has cancelled, it is the
// reason.
func ended(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(err, context.Canceled) && errors.Is(cause, flashdb.ErrClosed) {
		return cause
	}
	return err
}

// A place is what a call is made on: a Client, or a Collection of one.
type place[On any] interface {
	// here returns the database or collection, if it is open in this process.
	here() (on On, ok bool)
	// there returns the connection to the process that has the database open, and the name of the
	// collection.
	there() (c *connection, collection string)
}

// ask makes a call. It passes the parts of the answer to the functions of o. These may be nil,
// except that for items.
func (k call[On, Req, Item, Res]) ask(ctx context.Context, p place[On], r Req, o reply[Item]) (res Res, err error) {
	if on, ok := p.here(); ok {
		return k.answer(ctx, on, r, o)
	}
	c, collection := p.there()
	path := strings.Replace(k.path, anyCollection, url.PathEscape(collection), 1)
	err = c.call(ctx, path, r, &res, parts{
		item: func(decode func(any) error) error {
			var item Item
			if err := decode(&item); err != nil || o.item == nil {
				return err
			}
			return o.item(item)
		},
		progress: func(decode func(any) error) error {
			var p progress
			if err := decode(&p); err != nil || o.progress == nil {
				return err
			}
			o.progress(p.Stage, p.Done, p.Total)
			return nil
		},
	})
	return res, err
}
