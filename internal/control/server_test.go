package control

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errTeapot = errors.New("is a teapot")

type number struct{ N int }

// hold opens a directory until the test ends.
func hold(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// serve answers calls in a new directory until the test ends.
func serve(t *testing.T, dir string, calls map[string]Call) (*Client, *Server, context.CancelFunc) {
	t.Helper()
	base, cancel := context.WithCancel(context.Background())
	root := hold(t, dir)
	s, err := Serve(base, root, calls, func(err error) (string, int) {
		if errors.Is(err, errTeapot) {
			return errTeapot.Error(), http.StatusTeapot
		}
		return "", StatusOf(err, http.StatusInternalServerError)
	})
	require.NoError(t, err)
	client := NewClient(dir)
	t.Cleanup(func() {
		cancel()
		client.Close()
		assert.NoError(t, s.Close(true))
	})
	return client, s, cancel
}

func call(fn func(ctx context.Context, n *number, s *Stream) (any, error)) map[string]Call {
	return map[string]Call{"try": Handle(func(err error) error { return err }, fn)}
}

func TestCall(t *testing.T) {
	ctx := context.Background()
	client, _, _ := serve(t, t.TempDir(), call(func(_ context.Context, n *number, s *Stream) (any, error) {
		for i := range n.N {
			if err := s.Item(number{i}); err != nil {
				return nil, err
			}
		}
		if n.N == 3 {
			return nil, errTeapot
		}
		return number{n.N * n.N}, nil
	}))
	for range 2 { // on a connection that is kept
		var got number
		var items []int
		take := Reply{Item: func(decode func(any) error) error {
			var n number
			err := decode(&n)
			items = append(items, n.N)
			return err
		}}
		require.NoError(t, client.Call(ctx, "try", number{2}, &got, take))
		assert.Equal(t, 4, got.N)
		assert.Equal(t, []int{0, 1}, items)

		items = nil
		err := client.Call(ctx, "try", number{3}, &got, take)
		require.ErrorIs(t, err, errTeapot, "after items")
		assert.EqualError(t, err, errTeapot.Error())
		assert.Equal(t, []int{0, 1, 2}, items)

		require.NoError(t, client.Call(ctx, "try", nil, &got, Reply{}))
		assert.Zero(t, got.N)
	}
	require.ErrorContains(t, client.Call(ctx, "tyr", nil, nil, Reply{}), "knows no call /v1/tyr")
	require.ErrorContains(t, client.Call(ctx, "try", map[string]int{"M": 1}, nil, Reply{}), `unknown field "M"`)
}

func TestStatusOfAnError(t *testing.T) {
	client, _, _ := serve(t, t.TempDir(), call(func(context.Context, *number, *Stream) (any, error) { return nil, errTeapot }))
	for path, want := range map[string]int{"try": http.StatusTeapot, "other": http.StatusNotFound} {
		res, err := client.http.Get("http://flashdb" + pathPrefix + path)
		require.NoError(t, err)
		assert.Equal(t, want, res.StatusCode)
		require.NoError(t, res.Body.Close())
	}
	r, err := http.NewRequest(http.MethodPost, "http://flashdb"+pathPrefix+"try", strings.NewReader("{"))
	require.NoError(t, err)
	r.ContentLength = maxBody + 1
	r.Header.Set("Expect", "100-continue") // nothing of it is sent before the owner wants it
	client.http.Transport.(*http.Transport).ExpectContinueTimeout = time.Minute
	res, err := client.http.Do(r)
	require.NoError(t, err)
	assert.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
	require.NoError(t, res.Body.Close())
}

func TestProgressNeverWaitsForTheClient(t *testing.T) {
	worked, read := make(chan struct{}), make(chan struct{})
	client, _, _ := serve(t, t.TempDir(), call(func(_ context.Context, _ *number, s *Stream) (any, error) {
		for i := range 20_000 { // far more than a socket's buffers hold
			s.Progress(number{i})
		}
		close(worked)
		<-read
		return number{}, nil
	}))
	first := true
	last := -1
	err := client.Call(context.Background(), "try", nil, nil, Reply{Progress: func(decode func(any) error) error {
		if first {
			<-worked // while the client reads nothing
			close(read)
			first = false
		}
		var n number
		err := decode(&n)
		assert.Greater(t, n.N, last)
		last = n.N
		return err
	}})
	require.NoError(t, err)
	assert.Equal(t, 19_999, last, "the latest is always told")
}

func TestHangingUpCancelsTheCall(t *testing.T) {
	started, ended := make(chan struct{}), make(chan error, 1)
	client, _, _ := serve(t, t.TempDir(), call(func(ctx context.Context, _ *number, _ *Stream) (any, error) {
		close(started)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}))
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-started; cancel() }()
	require.ErrorIs(t, client.Call(ctx, "try", nil, nil, Reply{}), context.Canceled)
	require.ErrorIs(t, <-ended, context.Canceled)
}

func TestCloseEndsCallsAndRemovesTheSocket(t *testing.T) {
	dir := t.TempDir()
	started := make(chan struct{})
	client, s, cancel := serve(t, dir, call(func(ctx context.Context, _ *number, _ *Stream) (any, error) {
		close(started)
		<-ctx.Done()
		return nil, errTeapot
	}))
	failed := make(chan error, 1)
	go func() { failed <- client.Call(context.Background(), "try", nil, nil, Reply{}) }()
	<-started
	cancel()
	require.NoError(t, s.Close(true))
	require.ErrorIs(t, <-failed, errTeapot, "the call's own last word")
	assert.NoFileExists(t, filepath.Join(dir, SocketName))
	require.ErrorIs(t, client.Call(context.Background(), "try", nil, nil, Reply{}), ErrNoOwner)
}

func TestAnswerThatIsCutOff(t *testing.T) {
	client, _, _ := serve(t, t.TempDir(), call(func(_ context.Context, _ *number, s *Stream) (any, error) {
		if err := s.Item(number{}); err != nil {
			return nil, err
		}
		panic(http.ErrAbortHandler) // as a crash would end it, but without the noise
	}))
	err := client.Call(context.Background(), "try", nil, nil, Reply{})
	require.ErrorContains(t, err, "stopped answering")
}

func TestSocketIsOurs(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, nil)
	info, err := os.Lstat(filepath.Join(dir, SocketName))
	require.NoError(t, err)
	if runtime.GOOS != "windows" { // whose sockets have the directory's permissions
		assert.Equal(t, fs.ModeSocket|0o600, info.Mode())
	}
}

func TestLongPath(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	if runtime.GOOS != "linux" {
		_, err := Listen(hold(t, dir))
		require.ErrorContains(t, err, "shorter path")
		return
	}
	client, _, _ := serve(t, dir, call(func(context.Context, *number, *Stream) (any, error) { return number{7}, nil }))
	var n number
	require.NoError(t, client.Call(context.Background(), "try", nil, &n, Reply{}))
	assert.Equal(t, 7, n.N)
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, Sweep(hold(t, dir)), "nothing there")
	l, err := Listen(hold(t, dir))
	require.NoError(t, err)
	require.NoError(t, l.Close()) // leaves its socket, as a crash would
	require.ErrorIs(t, NewClient(dir).Call(context.Background(), "try", nil, nil, Reply{}), ErrNoOwner)
	require.NoError(t, Sweep(hold(t, dir)))
	assert.NoFileExists(t, filepath.Join(dir, SocketName))

	require.NoError(t, os.WriteFile(filepath.Join(dir, SocketName), []byte("mine"), 0o600))
	require.ErrorContains(t, Sweep(hold(t, dir)), "is not a socket")
	_, err = Listen(hold(t, dir))
	require.ErrorContains(t, err, "is not a socket")
}

func TestErrorHasAMeaning(t *testing.T) {
	var e Error
	require.NoError(t, json.Unmarshal([]byte(`{"code": "is a teapot", "text": "try: is a teapot"}`), &e))
	assert.ErrorIs(t, &e, errTeapot)
	assert.NotErrorIs(t, &e, ErrNoOwner)
	assert.NotErrorIs(t, &Error{Text: "x"}, errors.New(""))
}
