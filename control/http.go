package control

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/flashdb/flashdb/internal/wire"
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

// An answerer answers the call of a path, whose request is body.
type answerer func(ctx context.Context, path string, body []byte, s *stream) (result any, err error)

// A listening socket answers calls until it is closed.
type listening struct {
	answer answerer
	http   http.Server

	mu     sync.Mutex // guards closed, and work from growing after it
	closed bool
	work   sync.WaitGroup // the accepting goroutine and the calls under way
}

// serve makes the socket of dir, which the caller must own, and answers calls on it under contexts
// of base.
func serve(base context.Context, dir *os.Root, log *slog.Logger, answer answerer) (*listening, error) {
	l, err := listen(dir)
	if err != nil {
		return nil, err
	}
	s := &listening{answer: answer}
	s.http = http.Server{
		Handler:           http.HandlerFunc(s.serveHTTP),
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	if log != nil {
		s.http.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelError)
	}
	s.work.Go(func() { _ = s.http.Serve(l) }) // returns when closed
	return s, nil
}

// close ends the server but does not remove its socket. The caller has ended the base context, so
// running calls are ending. A client that does not read its answer is disconnected after closeTime.
func (s *listening) close() {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.work.Wait()
}

func (s *listening) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		return
	}
	defer s.work.Done()
	out := &stream{w: w, control: http.NewResponseController(w)}
	result, err := s.call(r, out)
	out.stopProgress()
	var last line
	if err == nil {
		last.Result, err = wire.Encode(result)
	}
	status := http.StatusOK
	if err != nil {
		last = line{}
		last.Error, status = failureOf(err)
	}
	_ = out.send(last, status) // the client may have gone
}

// begin counts a running call. It returns false if the server is closed.
func (s *listening) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.work.Add(1)
	}
	return !s.closed
}

func (s *listening) call(r *http.Request, out *stream) (any, error) {
	path, ok := strings.CutPrefix(r.URL.EscapedPath(), pathPrefix)
	if !ok {
		return nil, &unknownCall{r.URL.EscapedPath()}
	}
	if r.ContentLength > maxBody {
		return nil, &http.MaxBytesError{Limit: maxBody}
	}
	_ = out.control.SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(out.w, r.Body, maxBody))
	if err != nil {
		return nil, err
	}
	_ = out.control.SetReadDeadline(time.Time{})
	return s.answer(r.Context(), path, body, out)
}

// An unknownCall is the error for a path that no call has. A client of another version or a person
// may send one.
type unknownCall struct{ path string }

func (e *unknownCall) Error() string {
	return "the process that has the database open knows no call " + e.path + ": it runs another version of flashdb"
}
