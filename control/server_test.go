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

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/socket"
	"github.com/flashdb/flashdb/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type number struct{ N int }

// hold opens a directory until the test ends.
func hold(t *testing.T, dir string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// answering answers the call try on the socket of a directory until the test ends.
func answering(t *testing.T, dir string, try func(ctx context.Context, n number, s *stream) (any, error)) (*connection, *listening, context.CancelFunc) {
	t.Helper()
	base, cancel := context.WithCancel(context.Background())
	l, err := serve(base, hold(t, dir), nil, func(ctx context.Context, path string, body []byte, s *stream) (any, error) {
		var n number
		if path != "try" {
			return nil, &unknownCall{pathPrefix + path}
		}
		if err := wire.Decode(body, &n, true); err != nil {
			return nil, err
		}
		return try(ctx, n, s)
	})
	require.NoError(t, err)
	c := newConnection(dir)
	t.Cleanup(func() {
		cancel()
		c.close()
		l.close()
	})
	return c, l, cancel
}

// try makes the call try.
func try(ctx context.Context, c *connection, n int, p parts) (result int, err error) {
	var got number
	err = c.call(ctx, "try", number{n}, &got, p)
	return got.N, err
}

func TestCall(t *testing.T) {
	ctx := context.Background()
	c, _, _ := answering(t, t.TempDir(), func(_ context.Context, n number, s *stream) (any, error) {
		for i := range n.N {
			if err := s.item(number{i}); err != nil {
				return nil, err
			}
		}
		if n.N == 3 {
			return nil, flashdb.ErrExists
		}
		return number{n.N * n.N}, nil
	})
	for range 2 { // on a connection that is kept
		var items []int
		take := parts{item: func(decode func(any) error) error {
			var n number
			err := decode(&n)
			items = append(items, n.N)
			return err
		}}
		got, err := try(ctx, c, 2, take)
		require.NoError(t, err)
		assert.Equal(t, 4, got)
		assert.Equal(t, []int{0, 1}, items)

		items = nil
		_, err = try(ctx, c, 3, take)
		require.ErrorIs(t, err, flashdb.ErrExists, "after items")
		assert.EqualError(t, err, flashdb.ErrExists.Error())
		assert.Equal(t, []int{0, 1, 2}, items)

		got, err = try(ctx, c, 0, parts{})
		require.NoError(t, err)
		assert.Zero(t, got)
	}
	require.ErrorContains(t, c.call(ctx, "tyr", nil, nil, parts{}), "knows no call /v2/tyr")
	require.ErrorContains(t, c.call(ctx, "try", map[string]int{"M": 1}, nil, parts{}), `unknown field "M"`)
}

func TestStatusOfAnError(t *testing.T) {
	c, _, _ := answering(t, t.TempDir(), func(context.Context, number, *stream) (any, error) { return nil, flashdb.ErrExists })
	for path, want := range map[string]int{pathPrefix + "try": http.StatusConflict, pathPrefix + "other": http.StatusNotFound, "/v1/try": http.StatusNotFound} {
		res, err := c.http.Post("http://flashdb"+path, "application/json", strings.NewReader("{}"))
		require.NoError(t, err)
		assert.Equal(t, want, res.StatusCode)
		require.NoError(t, res.Body.Close())
	}
	r, err := http.NewRequest(http.MethodPost, "http://flashdb"+pathPrefix+"try", strings.NewReader("{"))
	require.NoError(t, err)
	r.ContentLength = maxBody + 1
	r.Header.Set("Expect", "100-continue") // nothing of it is sent before the owner wants it
	c.http.Transport.(*http.Transport).ExpectContinueTimeout = time.Minute
	res, err := c.http.Do(r)
	require.NoError(t, err)
	assert.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
	require.NoError(t, res.Body.Close())
}

func TestProgressNeverWaitsForTheClient(t *testing.T) {
	worked, read := make(chan struct{}), make(chan struct{})
	c, _, _ := answering(t, t.TempDir(), func(_ context.Context, _ number, s *stream) (any, error) {
		for i := range 20_000 { // far more than a socket's buffers hold
			s.progress(number{i})
		}
		close(worked)
		<-read
		return number{}, nil
	})
	first := true
	last := -1
	_, err := try(context.Background(), c, 0, parts{progress: func(decode func(any) error) error {
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
	started, over := make(chan struct{}), make(chan error, 1)
	c, _, _ := answering(t, t.TempDir(), func(ctx context.Context, _ number, _ *stream) (any, error) {
		close(started)
		<-ctx.Done()
		over <- ctx.Err()
		return nil, ctx.Err()
	})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-started; cancel() }()
	_, err := try(ctx, c, 0, parts{})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, <-over, context.Canceled)
}

func TestCloseEndsCalls(t *testing.T) {
	dir := t.TempDir()
	started := make(chan struct{})
	c, l, cancel := answering(t, dir, func(ctx context.Context, _ number, _ *stream) (any, error) {
		close(started)
		<-ctx.Done()
		return nil, flashdb.ErrExists
	})
	told := make(chan error, 1)
	go func() {
		_, err := try(context.Background(), c, 0, parts{})
		told <- err
	}()
	<-started
	cancel()
	l.close()
	require.ErrorIs(t, <-told, flashdb.ErrExists, "the call's own last word")
	_, err := try(context.Background(), c, 0, parts{})
	require.ErrorIs(t, err, ErrNoOwner)
}

func TestAnswerThatIsCutOff(t *testing.T) {
	c, _, _ := answering(t, t.TempDir(), func(_ context.Context, _ number, s *stream) (any, error) {
		if err := s.item(number{}); err != nil {
			return nil, err
		}
		panic(http.ErrAbortHandler) // as a crash would end it, but without the noise
	})
	_, err := try(context.Background(), c, 0, parts{item: func(func(any) error) error { return nil }})
	require.ErrorContains(t, err, "stopped answering")
}

func TestSocketIsOurs(t *testing.T) {
	dir := t.TempDir()
	answering(t, dir, nil)
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
		_, err := listen(hold(t, dir))
		require.ErrorContains(t, err, "shorter path")
		return
	}
	c, _, _ := answering(t, dir, func(context.Context, number, *stream) (any, error) { return number{7}, nil })
	n, err := try(context.Background(), c, 0, parts{})
	require.NoError(t, err)
	assert.Equal(t, 7, n)
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, socket.Sweep(hold(t, dir)), "nothing there")
	_, err := Dial(dir)
	require.ErrorIs(t, err, ErrNoOwner)
	l, err := listen(hold(t, dir))
	require.NoError(t, err)
	require.NoError(t, l.Close()) // leaves its socket, as a crash would
	_, err = Dial(dir)
	require.ErrorIs(t, err, ErrNoOwner)
	require.NoError(t, socket.Sweep(hold(t, dir)))
	assert.NoFileExists(t, filepath.Join(dir, SocketName))

	require.NoError(t, os.WriteFile(filepath.Join(dir, SocketName), []byte("mine"), 0o600))
	require.ErrorContains(t, socket.Sweep(hold(t, dir)), "is not a socket")
	_, err = listen(hold(t, dir))
	require.ErrorContains(t, err, "is not a socket")
}

func TestErrorHasAMeaning(t *testing.T) {
	var e failure
	require.NoError(t, json.Unmarshal([]byte(`{"code": "already exists", "text": "try: already exists"}`), &e))
	assert.ErrorIs(t, &e, flashdb.ErrExists)
	assert.NotErrorIs(t, &e, ErrNoOwner)
	assert.NotErrorIs(t, &failure{Text: "x"}, errors.New(""))
}
