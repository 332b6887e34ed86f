package control

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// Limits of a server.
const (
	maxBody    = 256 << 20        // bytes of a call
	headerTime = 10 * time.Second // to send a call's header
	bodyTime   = 2 * time.Minute  // to send its body
	writeTime  = 30 * time.Second // to take one line of the reply
	idleTime   = 2 * time.Minute  // between the calls of a connection
	closeTime  = 2 * time.Second  // for calls to end after their context did
)

// A Call answers one kind of call. body is its JSON; what it returns is the
// result, or the error.
type Call func(ctx context.Context, body []byte, s *Stream) (result any, err error)

// Handle makes a Call of a function of a decoded request. A request that does
// not decode is refused with what badRequest makes of the reason.
func Handle[Req any](badRequest func(error) error, fn func(ctx context.Context, req *Req, s *Stream) (any, error)) Call {
	return func(ctx context.Context, body []byte, s *Stream) (any, error) {
		var req Req
		if len(bytes.TrimSpace(body)) > 0 {
			if err := decode(body, &req, true); err != nil {
				return nil, badRequest(err)
			}
		}
		return fn(ctx, &req, s)
	}
}

// A Server answers calls on the socket of a directory until Close.
type Server struct {
	calls  map[string]Call
	codeOf func(error) (code string, status int)
	dir    *os.Root
	http   http.Server

	mu     sync.Mutex // guards closed, and work from growing after it
	closed bool
	work   sync.WaitGroup // the accepting goroutine and the calls under way
}

// Serve makes the socket of dir, which the caller must own, and answers calls
// on it under contexts of base. codeOf gives an error its code and HTTP status.
func Serve(base context.Context, dir *os.Root, calls map[string]Call, codeOf func(error) (code string, status int)) (*Server, error) {
	l, err := Listen(dir)
	if err != nil {
		return nil, err
	}
	s := &Server{calls: calls, codeOf: codeOf, dir: dir}
	s.http = http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	s.work.Go(func() { _ = s.http.Serve(l) }) // returns when closed
	return s, nil
}

// Close ends the server and, while the directory is the caller's, removes its
// socket. Calls under way should be
// ending, their base context done; a client that does not take its answer is
// cut off after a moment.
func (s *Server) Close(owned bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.work.Wait()
	if !owned {
		return nil
	}
	return Sweep(s.dir)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		return
	}
	defer s.work.Done()
	stream := &Stream{w: w, control: http.NewResponseController(w)}
	result, err := s.call(r, stream)
	stream.stopProgress()
	var last line
	if err == nil {
		last.Result, err = encode(result)
	}
	status := http.StatusOK
	if err != nil {
		last.Error = &Error{Text: err.Error()}
		last.Error.Code, status = s.codeOf(err)
	}
	_ = stream.send(last, status) // the client may have gone
}

// begin counts a call as under way, unless the server is closed.
func (s *Server) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Add(1)
	}
	return !s.closed
}

func (s *Server) call(r *http.Request, stream *Stream) (any, error) {
	name, _ := strings.CutPrefix(r.URL.Path, pathPrefix)
	call := s.calls[name]
	if call == nil {
		return nil, &unknownCall{r.URL.Path}
	}
	if r.ContentLength > maxBody {
		return nil, &http.MaxBytesError{Limit: maxBody}
	}
	_ = stream.control.SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(stream.w, r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	_ = stream.control.SetReadDeadline(time.Time{})
	return call(r.Context(), body, stream)
}

// An unknownCall is a call of a client of another version, or of a person's.
type unknownCall struct{ path string }

func (e *unknownCall) Error() string {
	return "the process that has the database open knows no call " + e.path + ": it runs another version of flashdb"
}

// StatusOf returns the HTTP status of a server's own errors, and otherwise the
// one given.
func StatusOf(err error, otherwise int) int {
	var unknown *unknownCall
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &unknown):
		return http.StatusNotFound
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge
	}
	return otherwise
}
