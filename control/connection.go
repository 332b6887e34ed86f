package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/flashdb/flashdb/internal/wire"
)

// A connection leads to the process that has a directory open.
type connection struct {
	dir  string
	http http.Client
}

// newConnection returns a connection that connects at its first call.
func newConnection(dir string) *connection {
	return &connection{dir: dir, http: http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dial(ctx, dir)
			if err != nil && ctx.Err() == nil {
				return nil, fmt.Errorf("%w: %w", ErrNoOwner, err)
			}
			return conn, err
		},
	}}}
}

// close closes idle connections.
func (c *connection) close() { c.http.CloseIdleConnections() }

// parts say what to do with the lines of a reply before the last. An error of a function ends the
// call.
type parts struct {
	progress func(decode func(v any) error) error
	item     func(decode func(v any) error) error
}

// call makes the call of a path with the JSON of req, and decodes the result into the value that
// result points to. An error of the other process is a *failure. When ctx ends, the call is
// cancelled there too.
func (c *connection) call(ctx context.Context, path string, req, result any, p parts) error {
	err := c.send(ctx, path, req, result, p)
	if ctx.Err() != nil && err != nil {
		return context.Cause(ctx)
	}
	return err
}

func (c *connection) send(ctx context.Context, path string, req, result any, p parts) error {
	body, err := wire.Encode(req)
	if err != nil {
		return err
	}
	if len(body) > maxBody {
		return fmt.Errorf("the request has %d bytes, and the control socket takes %d: send less at a time", len(body), maxBody)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://flashdb"+pathPrefix+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(r)
	if err != nil {
		return c.broken(errors.Unwrap(err)) // without the method and the URL
	}
	defer res.Body.Close()
	lines := json.NewDecoder(bufio.NewReader(res.Body))
	for {
		var l line
		if err := lines.Decode(&l); err != nil {
			return c.broken(err)
		}
		done, err := l.take(result, p)
		if err != nil {
			return err
		}
		if done {
			_, _ = io.Copy(io.Discard, res.Body) // so that the connection can be used again
			return nil
		}
	}
}

// broken returns the error for an answer that did not come, or not as a whole.
func (c *connection) broken(err error) error {
	if errors.Is(err, ErrNoOwner) {
		return err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the process that has %s open stopped answering: %w", c.dir, err)
}

// take uses a line, and reports whether it was the last.
func (l *line) take(result any, p parts) (done bool, err error) {
	of := func(raw json.RawMessage) func(any) error {
		return func(v any) error { return wire.Decode(raw, v, false) }
	}
	switch {
	case l.Error != nil:
		return true, l.Error
	case l.Result != nil:
		return true, wire.Decode(l.Result, result, false)
	case l.Item != nil:
		return false, p.item(of(l.Item))
	case l.Progress != nil:
		return false, p.progress(of(l.Progress))
	}
	return false, nil // of a kind that this version does not know
}
