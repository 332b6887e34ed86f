package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

// SQLSTATE codes: see appendix A of the manual of PostgreSQL.
const (
	uniqueViolation = "23505"
	undefinedTable  = "42P01"
	duplicateTable  = "42P07"
	lockTimeout     = "55P03"
)

// classes says which errors of the server are which of ours, by SQLSTATE or by its first two
// characters.
var classes = map[string]error{
	undefinedTable: flashdb.ErrNotFound,
	"3F000":        flashdb.ErrNotFound, // no such schema

	"42703":        remote.ErrForeign, // no such column
	"42704":        remote.ErrForeign, // no such object
	"42804":        remote.ErrForeign, // another type of a column
	"42809":        remote.ErrForeign, // not a table
	"42883":        remote.ErrForeign, // no such operator for the types of the columns
	"42846":        remote.ErrForeign, // cannot convert
	"42P10":        remote.ErrForeign, // no such unique key
	duplicateTable: remote.ErrForeign,
	"23502":        remote.ErrForeign, // a column of somebody else must not be null
	"23514":        remote.ErrForeign, // a check of somebody else

	"08":        remote.ErrUnavailable, // connection
	"53":        remote.ErrUnavailable, // connections, memory, disk
	"57":        remote.ErrUnavailable, // cancelled, shutting down, starting
	"40":        remote.ErrUnavailable, // serialization, deadlock
	"25006":     remote.ErrUnavailable, // read-only: a standby, until another server is primary
	lockTimeout: remote.ErrUnavailable,
	"55006":     remote.ErrUnavailable, // in use

	"22021": flashdb.ErrInvalid, // not UTF-8, or a zero byte
	"54000": flashdb.ErrInvalid, // too long, too many
}

// explain returns the error of a call with what it was about, as one of the errors of
// remote.Engine where it is one.
func explain(ctx context.Context, err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	what := fmt.Sprintf("postgres: "+format, args...)
	if cause := ctx.Err(); cause != nil {
		return fmt.Errorf("%s: %w", what, cause)
	}
	var opening *pgconn.ConnectError
	if errors.As(err, &opening) { // its text has a line for each address
		err = line{err}
	}
	if is := kind(err); is != nil && !errors.Is(err, is) {
		return fmt.Errorf("%s: %w: %w", what, is, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// A line is an error whose text is one line.
type line struct{ error }

func (l line) Error() string { return strings.Join(strings.Fields(l.error.Error()), " ") }

func (l line) Unwrap() error { return l.error }

// kind returns which error of remote.Engine an error is, or nil.
func kind(err error) error {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		is, ok := classes[server.Code]
		if !ok && len(server.Code) == 5 {
			is = classes[server.Code[:2]]
		}
		switch {
		case server.Code == "22000" && strings.Contains(server.Message, "dimensions"): // of pgvector
			is = flashdb.ErrDim
		case server.Code == "0A000" && strings.Contains(server.Message, "cached plan"):
			is = remote.ErrUnavailable // the statement is prepared anew
		}
		var opening *pgconn.ConnectError
		if errors.As(err, &opening) && is != remote.ErrUnavailable {
			return nil // it refuses the connection, and says nothing of the rows
		}
		return is
	}
	if err != nil && lost(err) {
		return remote.ErrUnavailable
	}
	return nil
}

// lost reports whether an error is of the connection and not of the server.
func lost(err error) bool {
	var certificate *tls.CertificateVerificationError
	if errors.As(err, &certificate) {
		return false
	}
	var network net.Error
	var opening *pgconn.ConnectError
	var parsing *pgconn.ParseConfigError
	switch {
	case errors.As(err, &parsing):
		return false
	case errors.As(err, &network), errors.As(err, &opening), pgconn.SafeToRetry(err), pgconn.Timeout(err):
		return true
	}
	for _, e := range []error{io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return strings.Contains(err.Error(), "conn closed")
}

// down reports whether an error says that other connections to the server are lost too.
func down(err error) bool {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return strings.HasPrefix(server.Code, "57P") // shutdown, crash, starting
	}
	return lost(err)
}

// code returns the SQLSTATE of an error, or "".
func code(err error) string {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Code
	}
	return ""
}
