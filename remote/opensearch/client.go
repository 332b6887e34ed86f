package opensearch

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

const (
	connectTimeout = 3 * time.Second
	// firstRest is how long a node is asked last after it has failed. Each further time it is twice
	// as long, up to lastRest.
	firstRest = 5 * time.Second
	lastRest  = time.Minute
	// silence is how long a node may be silent before it is asked for a sign of life, and how long
	// that may take. A node that hangs keeps its connections, and a call has a long time limit.
	silence = 3 * time.Second
	// connections is how many idle connections to each node are kept.
	connections = 32
)

// A client sends requests to nodes in turn. It is safe for concurrent use.
type client struct {
	nodes    []*node
	turn     atomic.Uint64
	http     *http.Client
	username string
	password string
	apiKey   string
	silence  time.Duration
}

// A node is one address.
type node struct {
	url      *url.URL
	failures atomic.Int64 // since it has answered
	until    atomic.Int64 // Unix time in nanoseconds until which it rests
}

// rest makes a node that has failed again and again be asked last for a while.
func (n *node) rest() {
	n.until.Store(time.Now().Add(n.pause(n.failures.Add(1))).UnixNano())
}

// pause is how long a node rests after so many failures.
func (n *node) pause(failures int64) time.Duration {
	return min(lastRest, firstRest<<min(10, max(0, failures-1)))
}

// errSilent is the error of a node that gives no sign of life.
var errSilent = errors.New("it accepts connections and does not answer")

func newClient(c *Config) (*client, error) {
	urls, err := c.addresses()
	if err != nil {
		return nil, err
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("opensearch: read CA file: %w", err)
		}
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("opensearch: CA file %s: %w: no PEM certificate in it", c.CAFile, flashdb.ErrInvalid)
		}
	}
	cl := &client{username: c.Username, password: c.Password, apiKey: c.APIKey, silence: silence}
	for _, u := range urls {
		cl.nodes = append(cl.nodes, &node{url: u})
	}
	cl.http = &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: connectTimeout, KeepAlive: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout: 2 * connectTimeout,
			TLSClientConfig:     tlsConfig,
			MaxIdleConns:        connections * len(urls),
			MaxIdleConnsPerHost: connections,
			IdleConnTimeout:     time.Minute,
			DisableCompression:  true, // base64 of vectors shrinks little, and slowly
		},
		// A redirect could lead the credentials elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return cl, nil
}

func (c *client) close() { c.http.CloseIdleConnections() }

// A request is one call of the REST interface.
type request struct {
	what   string // for errors: "search flashdb-papers-0123456789abcdef"
	method string
	path   string // with its parameters; every segment is escaped
	body   []byte
	lines  bool // body is JSON lines
}

// do sends a request to the next node, and to the others if that one fails. It decodes the answer
// into out.
func (c *client) do(ctx context.Context, r *request, out any) error {
	var last error
	for _, n := range c.order() {
		var status int
		var body []byte
		var err error
		if n.failures.Load() > 0 {
			err = c.ping(ctx, n)
		}
		if err == nil {
			status, body, err = c.watched(ctx, n, r)
		}
		switch {
		case err != nil && ctx.Err() != nil:
			if errors.Is(ctx.Err(), context.DeadlineExceeded) { // the next call asks for a sign of life first
				n.rest()
			}
			return fmt.Errorf("opensearch: %s: %w", r.what, ctx.Err())
		case err != nil && untrusted(err):
			return fmt.Errorf("opensearch: %s: node %s: %w: name the file of its authority in %s", r.what, n.url.Host, err, envCAFile)
		case err != nil:
			n.rest()
			last = fmt.Errorf("opensearch: %s: node %s: %w: %w", r.what, n.url.Host, remote.ErrUnavailable, err)
			continue
		}
		n.failures.Store(0)
		n.until.Store(0)
		if status < 200 || status > 299 {
			return fmt.Errorf("opensearch: %s: node %s: %w", r.what, n.url.Host, failed(status, body))
		}
		if out == nil {
			return nil
		}
		if err := json.Unmarshal(body, out); err != nil {
			return fmt.Errorf("opensearch: %s: node %s: its answer is not that of OpenSearch: %w", r.what, n.url.Host, err)
		}
		return nil
	}
	return last
}

// order returns the nodes in the order in which to ask them: in turn, those that rest last. A node
// whose rest is over is tried by one call alone.
func (c *client) order() []*node {
	first, now := c.turn.Add(1), time.Now()
	all, resting := make([]*node, 0, len(c.nodes)), make([]*node, 0, len(c.nodes))
	for i := range c.nodes {
		n := c.nodes[(first+uint64(i))%uint64(len(c.nodes))]
		until := n.until.Load()
		if until > now.UnixNano() || until != 0 && !n.until.CompareAndSwap(until, now.Add(n.pause(n.failures.Load())).UnixNano()) {
			resting = append(resting, n)
		} else {
			all = append(all, n)
		}
	}
	return append(all, resting...)
}

// ping asks a node for a sign of life. Any answer is one.
func (c *client) ping(ctx context.Context, n *node) error {
	limited, cancel := context.WithTimeoutCause(ctx, c.silence, errSilent)
	defer cancel()
	_, _, err := c.send(limited, n, &request{method: http.MethodHead, path: "/"})
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return errSilent
	}
	return err
}

// watched sends a request to a node, and gives it up if the node falls silent.
func (c *client) watched(ctx context.Context, n *node, r *request) (status int, body []byte, err error) {
	limited, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		again := time.NewTicker(c.silence)
		defer again.Stop()
		for {
			select {
			case <-limited.Done():
				return
			case <-again.C:
				if c.ping(limited, n) != nil {
					cancel(errSilent)
				}
			}
		}
	})
	status, body, err = c.send(limited, n, r)
	cancel(nil)
	watching.Wait()
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(limited), errSilent) {
		err = errSilent
	}
	return status, body, err
}

// send sends a request to one node, and reads the whole answer.
func (c *client) send(ctx context.Context, n *node, r *request) (status int, body []byte, _ error) {
	req, err := http.NewRequestWithContext(ctx, r.method, n.url.String()+r.path, bytes.NewReader(r.body))
	if err != nil {
		return 0, nil, err
	}
	switch {
	case r.lines:
		req.Header.Set("Content-Type", "application/x-ndjson")
	case r.body != nil:
		req.Header.Set("Content-Type", "application/json")
	}
	switch {
	case c.apiKey != "":
		req.Header.Set("Authorization", "ApiKey "+c.apiKey)
	case c.username != "":
		req.SetBasicAuth(c.username, c.password)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var in *url.Error
		if errors.As(err, &in) { // it repeats method and address
			err = in.Err
		}
		return 0, nil, err
	}
	defer resp.Body.Close()
	var buf bytes.Buffer
	if resp.ContentLength > 0 {
		buf.Grow(int(resp.ContentLength) + bytes.MinRead)
	}
	_, err = io.Copy(&buf, resp.Body)
	return resp.StatusCode, buf.Bytes(), err
}

// untrusted reports whether the node's certificate was refused. Another attempt does not help.
func untrusted(err error) bool {
	var refused *tls.CertificateVerificationError
	return errors.As(err, &refused)
}
