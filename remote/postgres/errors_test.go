package postgres

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

func TestExplain(t *testing.T) {
	ctx := context.Background()
	server := func(code string, message ...string) error {
		return fmt.Errorf("query: %w", &pgconn.PgError{Severity: "ERROR", Code: code, Message: fmt.Sprint(message)})
	}
	all := []error{flashdb.ErrNotFound, flashdb.ErrInvalid, flashdb.ErrDim, remote.ErrForeign, remote.ErrUnavailable}
	for _, tt := range []struct {
		err  error
		want error
	}{
		{server("42P01"), flashdb.ErrNotFound},
		{server("3F000"), flashdb.ErrNotFound},
		{server("42703"), remote.ErrForeign},
		{server("42883"), remote.ErrForeign},
		{server("42P07"), remote.ErrForeign},
		{server("57P01"), remote.ErrUnavailable},
		{server("57P02"), remote.ErrUnavailable},
		{server("57P03"), remote.ErrUnavailable},
		{server("57014"), remote.ErrUnavailable},
		{server("53300"), remote.ErrUnavailable},
		{server("53200"), remote.ErrUnavailable},
		{server("08006"), remote.ErrUnavailable},
		{server("40001"), remote.ErrUnavailable},
		{server("40P01"), remote.ErrUnavailable},
		{server("55P03"), remote.ErrUnavailable},
		{server("25006"), remote.ErrUnavailable},
		{server("22000", "expected 13 dimensions, not 14"), flashdb.ErrDim},
		{server("22021"), flashdb.ErrInvalid},
		{server("0A000", "cached plan must not change result type"), remote.ErrUnavailable},
		{server("0A000", "else"), nil},
		{server("28P01"), nil},
		{server("42501"), nil},
		{server("42601"), nil},
		{server("XX001"), nil},
		{server(""), nil},
		{&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, remote.ErrUnavailable},
		{fmt.Errorf("read: %w", syscall.ECONNRESET), remote.ErrUnavailable},
		{io.ErrUnexpectedEOF, remote.ErrUnavailable},
		{io.EOF, remote.ErrUnavailable},
		{&net.DNSError{Err: "no such host"}, remote.ErrUnavailable},
		{pgconn.ErrConnClosed, remote.ErrUnavailable},
		{&net.OpError{Op: "dial", Err: &tls.CertificateVerificationError{Err: errors.New("unknown authority")}}, nil},
		{errors.New("something else"), nil},
		{fmt.Errorf("%w: a row", remote.ErrForeign), remote.ErrForeign},
	} {
		err := explain(ctx, tt.err, "search collection %q", "papers")
		assert.ErrorContains(t, err, `postgres: search collection "papers": `)
		require.ErrorIs(t, err, tt.err, "the cause stays")
		for _, e := range all {
			assert.Equal(t, e == tt.want, errors.Is(err, e), "%v is %v", err, e)
		}
	}
	require.NoError(t, explain(ctx, nil, "search"))
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	err := explain(cancelled, io.EOF, "search")
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, remote.ErrUnavailable, "it is not repeated")
}

// TestDown calls a server that is not there.
func TestDown(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := listener.Addr().String()
	require.NoError(t, listener.Close())
	e, err := Open(Config{URL: "postgres://app@" + at + "," + at + "/links?sslmode=disable", Password: "hunter2"})
	require.NoError(t, err)
	defer e.Close()
	name := remote.Name{Collection: "papers", Version: "0123456789abcdef"}
	_, err = e.Search(context.Background(), name, &remote.Query{Vectors: [][]float32{{1, 2}}, N: 1})
	require.ErrorIs(t, err, remote.ErrUnavailable)
	assert.NotContains(t, err.Error(), "hunter2")
	assert.NotContains(t, err.Error(), "\n")
	_, err = e.Live(context.Background(), "papers")
	require.ErrorIs(t, err, remote.ErrUnavailable)
	_, err = e.Versions(context.Background(), "papers")
	require.ErrorIs(t, err, remote.ErrUnavailable)
	require.ErrorIs(t, e.Drop(context.Background(), name), remote.ErrUnavailable)
}
