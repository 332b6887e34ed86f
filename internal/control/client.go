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
)

// ErrNoOwner is returned by a client when nobody answers on the socket.
var ErrNoOwner = errors.New("nobody answers on the control socket")

// A Client asks the process that has a directory open.
type Client struct {
	dir  string
	http http.Client
}

// NewClient returns a client for the owner of dir. It connects when it is first
// asked.
func NewClient(dir string) *Client {
	return &Client{dir: dir, http: http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dial(ctx, dir)
			if err != nil && ctx.Err() == nil {
				return nil, fmt.Errorf("%w: %w", ErrNoOwner, err)
			}
			return conn, err
		},
	}}}
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// A Reply says what to do with the lines of a reply before the last. A nil
// function passes its lines over; an error of one ends the call.
type Reply struct {
	Progress func(decode func(v any) error) error
	Item     func(decode func(v any) error) error
}

// Call asks for name with the JSON of req, which may be nil, and decodes the
// result into the value that result points to, unless it is nil. An error of
// the owner's is an *Error; a done ctx cancels the call there.
func (c *Client) Call(ctx context.Context, name string, req, result any, reply Reply) error {
	err := c.call(ctx, name, req, result, reply)
	if ctx.Err() != nil && err != nil {
		return context.Cause(ctx)
	}
	return err
}

func (c *Client) call(ctx context.Context, name string, req, result any, reply Reply) error {
	body, err := encode(req)
	if err != nil {
		return err
	}
	if len(body) > maxBody {
		return fmt.Errorf("the request has %d bytes, and the control socket takes %d: send less at a time", len(body), maxBody)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://flashdb"+pathPrefix+name, bytes.NewReader(body))
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
		done, err := l.take(result, reply)
		if err != nil {
			return err
		}
		if done {
			_, _ = io.Copy(io.Discard, res.Body) // so that the connection can be used again
			return nil
		}
	}
}

// broken says that an answer did not come, or not whole.
func (c *Client) broken(err error) error {
	if errors.Is(err, ErrNoOwner) {
		return err
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("the process that has %s open stopped answering: %w", c.dir, err)
}

// take uses a line, and reports whether it was the last.
func (l *line) take(result any, reply Reply) (done bool, err error) {
	pass := func(fn func(func(any) error) error, raw json.RawMessage) error {
		if fn == nil {
			return nil
		}
		return fn(func(v any) error { return decode(raw, v, false) })
	}
	switch {
	case l.Error != nil:
		return true, l.Error
	case l.Result != nil:
		if result != nil {
			err = decode(l.Result, result, false)
		}
		return true, err
	case l.Item != nil:
		return false, pass(reply.Item, l.Item)
	case l.Progress != nil:
		return false, pass(reply.Progress, l.Progress)
	}
	return false, nil // of a kind that this version does not know
}
