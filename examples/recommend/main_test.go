package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
)

// serve runs the service on a new database.
func serve(t *testing.T, users, items int) (dir, url string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "shop.flash")
	db, err := flashdb.Open(dir, &flashdb.Options{CalibrateTime: -1})
	require.NoError(t, err)
	_, err = control.Serve(db, nil)
	require.NoError(t, err)
	shop, err := openShop(context.Background(), db, users, items)
	require.NoError(t, err)
	server := httptest.NewServer(shop.handler())
	t.Cleanup(func() {
		server.Close()
		findings, err := db.Check(context.Background())
		assert.NoError(t, err)
		assert.Empty(t, findings)
		assert.NoError(t, db.Close())
	})
	return dir, server.URL
}

// ask sends a request and returns its status and body.
func ask(t *testing.T, method, url string, body any) (int, []byte) {
	var sent bytes.Buffer
	assert.NoError(t, json.NewEncoder(&sent).Encode(body))
	r, err := http.NewRequest(method, url, &sent)
	if !assert.NoError(t, err) {
		return 0, nil
	}
	res, err := http.DefaultClient.Do(r)
	if !assert.NoError(t, err) {
		return 0, nil
	}
	defer res.Body.Close()
	var got bytes.Buffer
	_, err = got.ReadFrom(res.Body)
	assert.NoError(t, err)
	return res.StatusCode, got.Bytes()
}

func keys(t *testing.T, body []byte) []string {
	var list []recommendation
	assert.NoError(t, json.Unmarshal(body, &list), "%s", body)
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.Key
	}
	return names
}

func TestRequests(t *testing.T) {
	_, url := serve(t, 50, 200)
	get := func(path string) []string {
		t.Helper()
		code, body := ask(t, http.MethodGet, url+path, nil)
		require.Equal(t, http.StatusOK, code, "%s", body)
		return keys(t, body)
	}
	best := get("/items?user=user-1&k=3")
	require.Len(t, best, 3)
	code, _ := ask(t, http.MethodPut, url+"/likes/user-1/"+best[0], nil)
	require.Equal(t, http.StatusNoContent, code)
	code, _ = ask(t, http.MethodDelete, url+"/items/"+best[1], nil)
	require.Equal(t, http.StatusNoContent, code)
	after := get("/items?user=user-1&k=3")
	assert.Equal(t, best[2], after[0], "the liked and the deleted one are gone")

	friends := get("/friends?user=user-1&k=1")
	code, _ = ask(t, http.MethodPut, url+"/friends/user-1/"+friends[0], nil)
	require.Equal(t, http.StatusNoContent, code)
	assert.NotContains(t, get("/friends?user=user-1"), friends[0])
	assert.NotContains(t, get("/friends?user="+friends[0]), "user-1")

	for path, want := range map[string]int{
		"/items?user=nobody":       http.StatusNotFound,
		"/items?user=user-1&k=few": http.StatusBadRequest,
		"/items?user=user-1&k=0":   http.StatusBadRequest,
	} {
		code, _ := ask(t, http.MethodGet, url+path, nil)
		assert.Equal(t, want, code, path)
	}
	for body, want := range map[any]int{7: http.StatusBadRequest, "user-1": http.StatusBadRequest} {
		code, _ = ask(t, http.MethodPut, url+"/items/wrong", body)
		assert.Equal(t, want, code)
	}
	code, _ = ask(t, http.MethodPut, url+"/items/wrong", []string{})
	assert.Equal(t, http.StatusBadRequest, code, "nothing to embed it from")
	code, _ = ask(t, http.MethodPut, url+"/items/wrong", []string{"nobody"})
	assert.Equal(t, http.StatusNotFound, code)
}

// TestTaste: users are recommended items of their taste, those that come later as well.
func TestTaste(t *testing.T) {
	if testing.Short() {
		t.Skip("it trains a model, as the other tests do, and asks for a few predictions")
	}
	_, url := serve(t, 400, 1200)
	code, body := ask(t, http.MethodPut, url+"/users/zoe", []string{"item-7", "item-47", "item-87", "item-127"})
	require.Equal(t, http.StatusNoContent, code, "%s", body)
	for user, taste := range map[string]int{"user-3": 3, "user-45": 5, "zoe": 7} {
		code, body := ask(t, http.MethodGet, url+"/items?k=10&user="+user, nil)
		require.Equal(t, http.StatusOK, code, "%s", body)
		fit := 0
		for _, key := range keys(t, body) {
			var item int
			_, err := fmt.Sscanf(key, "item-%d", &item)
			require.NoError(t, err)
			if item%tastes == taste {
				fit++
			}
		}
		assert.GreaterOrEqual(t, fit, 7, "%s: %s", user, body) // by chance 0.25 of ten
	}
}

// A load is a service under requests.
type load struct {
	t       *testing.T
	url     string
	deleted sync.Map // keys of items, once their deletion was answered
	mu      sync.Mutex
	times   []time.Duration // of reads since take
}

// read recommends, and demands that nothing deleted before is recommended.
func (l *load) read(rng *rand.Rand) {
	var gone []string
	l.deleted.Range(func(k, _ any) bool { gone = append(gone, k.(string)); return true })
	path := "/items?k=50&user="
	if rng.IntN(4) == 0 {
		path = "/friends?k=10&user="
	}
	start := time.Now()
	code, body := ask(l.t, http.MethodGet, fmt.Sprintf("%s%suser-%d", l.url, path, rng.IntN(100)), nil)
	elapsed := time.Since(start)
	if !assert.Equal(l.t, http.StatusOK, code, "%s", body) {
		return
	}
	found := keys(l.t, body)
	assert.NotEmpty(l.t, found)
	for _, key := range gone {
		assert.NotContains(l.t, found, key, "it was deleted before")
	}
	l.mu.Lock()
	l.times = append(l.times, elapsed)
	l.mu.Unlock()
}

// write adds an item that suits a user, and now and then deletes an early one.
func (l *load) write(rng *rand.Rand, i int) {
	likedBy := []string{fmt.Sprintf("user-%d", rng.IntN(100))}
	code, body := ask(l.t, http.MethodPut, fmt.Sprintf("%s/items/new-%d", l.url, i), likedBy)
	assert.Equal(l.t, http.StatusNoContent, code, "%s", body)
	key := fmt.Sprintf("item-%d", i)
	if i%3 == 0 {
		key = fmt.Sprintf("new-%d", i)
	}
	code, body = ask(l.t, http.MethodDelete, l.url+"/items/"+key, nil)
	assert.Equal(l.t, http.StatusNoContent, code, "%s", body)
	l.deleted.Store(key, true)
}

// take returns how many reads there were since the last take, and their 50th and 99th percentile.
func (l *load) take() (n int, p50, p99 time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.times)
	if n = len(l.times); n > 0 {
		p50, p99 = l.times[n/2], l.times[n*99/100]
	}
	l.times = nil
	return n, p50, p99
}

// TestServesWhileAnotherProcessRebuilds runs the rebuild job of the flashdb command against the
// service under load: no request fails, and none sees a deleted item.
func TestServesWhileAnotherProcessRebuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("another process rebuilds; what this one runs at once, other tests run too")
	}
	command := filepath.Join(t.TempDir(), "flashdb")
	if runtime.GOOS == "windows" {
		command += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", command, "github.com/flashdb/flashdb/cmd/flashdb").CombinedOutput()
	require.NoError(t, err, "%s", out)
	dir, url := serve(t, 100, 4_000)
	l := &load{t: t, url: url}

	var writes atomic.Int64
	run := func(during func()) {
		var work sync.WaitGroup
		done := make(chan struct{})
		for seed := range uint64(2) {
			work.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 1))
				for {
					select {
					case <-done:
						return
					default:
						l.read(rng)
					}
				}
			})
		}
		work.Go(func() {
			rng := rand.New(rand.NewPCG(9, 9))
			for {
				select {
				case <-done:
					return
				default:
					l.write(rng, int(writes.Add(1)))
				}
			}
		})
		during()
		close(done)
		work.Wait()
	}
	report := func(when string) {
		n, p50, p99 := l.take()
		t.Logf("%s: %d reads, p50 %v, p99 %v", when, n, p50.Round(time.Microsecond), p99.Round(time.Microsecond))
		assert.Positive(t, n)
	}
	rebuild := func(args ...string) {
		cmd := exec.Command(command, append([]string{"rebuild", dir}, args...)...)
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		require.NoError(t, cmd.Run(), "%s", &stderr)
		assert.Contains(t, stderr.String(), "asked it through control.sock")
		assert.Contains(t, stdout.String(), "items: built generation")
	}
	rebuild("--force", "--calibrate-time", "-1s") // the first index, at rest
	run(func() {
		for range 50 {
			l.read(rand.New(rand.NewPCG(3, 3)))
		}
	})
	report("quiet")
	run(func() {
		for range 2 {
			rebuild("--force", "--calibrate-time", "-1s")
		}
	})
	report("during rebuilds")
	t.Logf("%d items added and as many deleted", writes.Load())
}
