package browsertest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
)

// patience is how long a test waits for what it expects to see, on a busy machine.
const patience = 90 * time.Second

// program is flashdb, built once by TestMain; browser is the program that shows pages.
var program, browser string

func TestMain(m *testing.M) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"} {
		if found, err := exec.LookPath(name); err == nil && browser == "" {
			browser = found
		}
	}
	code := 0
	func() {
		if browser != "" {
			dir, err := os.MkdirTemp("", "browsertest")
			if err != nil {
				panic(err)
			}
			defer os.RemoveAll(dir)
			program = filepath.Join(dir, "flashdb")
			build := exec.Command("go", "build", "-o", program, "./cmd/flashdb")
			build.Dir = filepath.Join("..", "..", "..", "..", "..")
			if out, err := build.CombinedOutput(); err != nil {
				panic(string(out))
			}
		}
		code = m.Run()
	}()
	os.Exit(code)
}

// Keys and a payload that try to become part of the page.
const (
	scriptKey = `<img src=x onerror="window.hacked=1"><script>window.hacked=2</script>`
	turnedKey = "\u202egnp.eman\nline two"
	payload   = `{"a":"</pre><script>window.hacked=3</script><img src=x onerror=window.hacked=4>","b":[1,2]}`
)

var longKey = strings.Repeat("0123456789abcdef", 64) // as long as keys are

// database makes a database of ordinary and hostile nodes and returns its directory.
func database(t *testing.T) string {
	t.Helper()
	ctx := context.Background()
	dir := filepath.Join(t.TempDir(), "shop.flash")
	db, err := flashdb.Open(dir, nil)
	require.NoError(t, err)
	c, err := db.CreateCollection("items", flashdb.Schema{Dim: 3})
	require.NoError(t, err)
	var nodes []flashdb.Node
	for i := range 80 {
		nodes = append(nodes, flashdb.Node{
			Key: fmt.Sprintf("item %02d of a quite long name", i), Embedding: []float32{float32(i) / 20, float32(i%7) / 4, 1},
			Tags: []string{"all", fmt.Sprintf("mod%d", i%3)}, Payload: fmt.Appendf(nil, `{"n":%d,"list":[1,2]}`, i),
			Attributes: flashdb.Attributes{"price": float64(i) / 2, "released": time.Date(2025, 1, 1+i, 0, 0, 0, 0, time.UTC)},
		})
	}
	for i, key := range []string{scriptKey, turnedKey, longKey, "\xff\xfe"} {
		nodes = append(nodes, flashdb.Node{
			Key: key, Embedding: []float32{5, float32(i), 1}, Tags: []string{"<b>bold</b>", "\u202edet", strings.Repeat("tag", 80)}, Payload: []byte(payload),
			Attributes: flashdb.Attributes{"<i>name</i>": "<script>window.hacked=5</script>\u202e"},
		})
	}
	require.NoError(t, c.Upsert(ctx, nodes...))
	_, err = db.CreateCollection("void", flashdb.Schema{Dim: 3})
	require.NoError(t, err)
	dot, err := decoder.NewDot(3)
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(ctx, "dot", dot))
	other, err := decoder.NewDistMult([]float32{0.1, 3, 1})
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(ctx, "weighted", other))
	graph, err := decoder.NewRelations(decoder.DistMult, 3, []string{"likes", "hates"}, []float32{1, 0, 0, -1, 0, 0})
	require.NoError(t, err)
	require.NoError(t, c.PutDecoder(ctx, "graph", graph))
	edges := []flashdb.Edge{{Source: nodes[10].Key, Target: nodes[79].Key, Relation: "likes"}}
	for i := 1; i < 40; i++ {
		edges = append(edges, flashdb.Edge{Source: nodes[0].Key, Target: nodes[i].Key}, flashdb.Edge{Source: nodes[i].Key, Target: nodes[i*2].Key})
	}
	edges = append(edges, flashdb.Edge{Source: nodes[1].Key, Target: scriptKey}, flashdb.Edge{Source: scriptKey, Target: longKey})
	require.NoError(t, c.Link(ctx, edges...))
	stage(t, db, nodes)
	require.NoError(t, db.Close())
	return dir
}

// stage makes a release in which the first nodes lie the other way round.
func stage(t *testing.T, db *flashdb.DB, nodes []flashdb.Node) {
	t.Helper()
	ctx := context.Background()
	night, err := db.StageRelease(ctx, "night", "items")
	require.NoError(t, err)
	var turned []flashdb.Node
	for i, n := range nodes[:70] {
		turned = append(turned, flashdb.Node{Key: n.Key, Embedding: []float32{float32(70-i) / 20, n.Embedding[1], 1}})
	}
	_, err = night.Put(ctx, "items", turned...)
	require.NoError(t, err)
	dot, err := decoder.NewDot(3)
	require.NoError(t, err)
	require.NoError(t, night.PutDecoder(ctx, "items", "dot", dot))
	items, err := db.Collection("items")
	require.NoError(t, err)
	_, err = items.Rebuild(ctx, &flashdb.RebuildOptions{Force: true})
	require.NoError(t, err)
	require.NoError(t, items.Upsert(ctx, nodes[20], nodes[21]))
}

func item(i int) string { return fmt.Sprintf("item %02d of a quite long name", i) }

// A tab is one page of the browser, and what went wrong in it.
type tab struct {
	t       *testing.T
	ctx     context.Context
	address string // of the page, with its token

	mu     sync.Mutex
	faults []string // exceptions, what the policy refused, dialogs
}

// open serves a database and opens a browser of its own.
func open(t *testing.T, args ...string) *tab {
	t.Helper()
	if browser == "" {
		t.Skip("there is no Chromium here")
	}
	b := &tab{t: t, address: serve(t, args...)}
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, chromedp.ExecPath(browser), chromedp.UserDataDir(t.TempDir()),
		chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.WSURLReadTimeout(patience),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true))
	t.Cleanup(cancel)
	b.ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(b.ctx) // and wait until it has ended
		cancel()
	})
	chromedp.ListenTarget(b.ctx, b.listen)
	b.do(log.Enable(), chromedp.EmulateViewport(1200, 900))
	return b
}

// serve runs flashdb browse and returns the address that it prints.
func serve(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, append([]string{"browse", database(t), "--no-open"}, args...)...)
	var errOut strings.Builder
	cmd.Stderr = &errOut
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	address, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, errOut.String())
	t.Cleanup(func() {
		require.NoError(t, cmd.Process.Signal(os.Interrupt))
		assert.NoError(t, cmd.Wait(), "it ends in good order: %s", errOut.String())
	})
	return strings.TrimSpace(address)
}

func (b *tab) listen(event any) {
	fault := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		fault = "exception: " + e.ExceptionDetails.Error()
	case *page.EventJavascriptDialogOpening:
		fault = "dialog: " + e.Message
	case *log.EventEntryAdded:
		if e.Entry.Source == log.SourceSecurity || e.Entry.Source == log.SourceJavascript {
			fault = "log: " + e.Entry.Text
		}
	}
	if fault != "" {
		b.mu.Lock()
		b.faults = append(b.faults, fault)
		b.mu.Unlock()
	}
}

// sound fails the test if anything went wrong in the page.
func (b *tab) sound() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	assert.Empty(b.t, b.faults)
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Run(b.ctx, actions...))
}

// visit opens the page in a state: the query of its address.
func (b *tab) visit(query string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.address + query))
}

// js returns the value of an expression.
func js[T any](b *tab, expression string) (v T) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, &v))
	return v
}

// until waits for an expression to be true.
func (b *tab) until(expression string) {
	b.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if js[bool](b, "(() => { try { return Boolean("+expression+") } catch { return false } })()") { // a part may not be there yet
			return
		}
		if time.Now().After(end) {
			require.Fail(b.t, "it was waited for in vain", "%s\n%s\n%v", expression, js[string](b, "document.body.innerText"), b.faults)
		}
	}
}

// heading is the name of the node that is shown.
const heading = `(document.querySelector(".head h1")?.textContent || "")`

// shows waits until the page shows a node and the answers to its questions.
func (b *tab) shows(label string) {
	b.t.Helper()
	b.until(fmt.Sprintf("%s === %q", heading, label))
	b.until(`document.querySelector(".first .hits, .first .fault, .first .soft + .soft") && document.querySelector(".drawing .graph, .drawing .fault, .drawing .not-drawn")`)
}
