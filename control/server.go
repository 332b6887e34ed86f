package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/socket"
)

// SocketName is the name of the socket inside a database directory.
const SocketName = socket.Name

// Options are the options of Serve. The zero value, or nil, means the defaults.
type Options struct {
	// Logger receives errors that belong to no caller: that a call panicked, or that a connection
	// could not be accepted. Default: the logger of package log.
	Logger *slog.Logger
}

// A Server answers the calls of other processes on the socket of a database until it is closed, or
// the database is.
type Server struct {
	db     *flashdb.DB
	dir    *os.Root
	socket *listening
	end    context.CancelCauseFunc // of the calls under way
	forget func()

	mu     sync.Mutex // held by Serve and Close: the one waits for the other
	closed bool
	err    error // of Close
}

// served holds the databases that have a Server. A second one would replace the socket of the
// first.
var served sync.Map

// errNoLonger is the error of calls that run when a Server is closed.
var errNoLonger = fmt.Errorf("%w to other processes", flashdb.ErrClosed)

// Serve makes the socket of a database that this process has open, and answers the calls of other
// processes of this user on it: see Dial, and the flashdb command. It replaces a socket that a
// killed process left there. Closing the database first closes the Server.
//
// It returns ErrReadOnly for a database that was opened read-only or whose directory was moved, and
// ErrExists for one that is served already.
func Serve(db *flashdb.DB, opts *Options) (_ *Server, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("serve the control socket of %s: %w", db.Dir(), err)
		}
	}()
	var o Options
	if opts != nil {
		o = *opts
	}
	s := &Server{db: db}
	if _, is := served.LoadOrStore(db, s); is {
		return nil, fmt.Errorf("a server %w", flashdb.ErrExists)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err = s.start(o); err != nil {
		s.closed = true
		served.Delete(db)
		return nil, err
	}
	return s, nil
}

// start makes the socket. The database cannot be closed meanwhile: that waits for Close of the
// Server, which waits for Serve.
func (s *Server) start(o Options) (err error) {
	if s.forget, err = s.db.BeforeClose(s.Close); err != nil {
		return err
	}
	if s.dir, err = s.db.OpenRoot(); err != nil {
		s.forget()
		return err
	}
	base, end := context.WithCancelCause(context.Background())
	s.end = end
	s.socket, err = serve(base, s.dir, o.Logger, func(ctx context.Context, path string, body []byte, reply *stream) (any, error) {
		return handle(ctx, s.db, path, body, reply)
	})
	if err != nil {
		end(nil)
		s.forget()
		return errors.Join(err, s.dir.Close())
	}
	return nil
}

// Close ends the running calls, which return ErrClosed, and removes the socket. It does not remove
// it if the directory was moved or replaced, because the socket of another database may be there. A
// client that does not read its answer is disconnected after two seconds. Closing again does
// nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return s.err
	}
	s.closed = true
	s.end(errNoLonger)
	s.socket.close()
	s.err = errors.Join(s.removeSocket(), s.dir.Close())
	served.Delete(s.db)
	s.forget()
	return s.err
}

// removeSocket removes the socket if the path still leads to the directory of the database. No
// other process can own it then, because the database is closed after the Server.
func (s *Server) removeSocket() error {
	held, err := s.db.OpenRoot()
	if errors.Is(err, flashdb.ErrReadOnly) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(socket.Sweep(held), held.Close())
}
