package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/assert"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/control"
)

func TestMain(m *testing.M) {
	terminal.TextFrom = time.Hour // here and in the commands, which run this function too
	testscript.Main(m, map[string]func(){"flashdb": func() { hookFailpoints(); main() }})
}

// TestScripts runs testdata/script. Beside testscript's own commands, scripts may use
//
//	exits CODE COMMAND...   the command exits with that code
//	fails COMMAND...        it exits with 1, prints nothing, and one line "flashdb: ..." on stderr
//	hold DIR [control]      the test has the database open until the script ends, with a control socket or without
//	release                 or until now
//	serve ARGS...           starts flashdb serve ARGS, and waits until it says that it serves
//	interrupt               ends it in good order; its output is in serve.out and serve.err
//	nextsecond              waits until the clock shows another second: times are stored in seconds
//	deadsocket DIR          leaves the control socket of an owner that died
//
// and $DEMODATA, the folder of the demo's files, $DECODERS, that of decoders PyTorch wrote,
// $PARQUET, that of tables pyarrow wrote, $GRAPHS, that of graphs PyTorch wrote, and $LONGKEY, a
// key of 1025 bytes.
func TestScripts(t *testing.T) {
	demodata, err := filepath.Abs("demodata")
	if err != nil {
		t.Fatal(err)
	}
	decoders, err := filepath.Abs(filepath.Join("..", "..", "decoder", "weights", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Abs(filepath.Join("internal", "parquet", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	graphs, err := filepath.Abs(filepath.Join("..", "..", "train", "graph", "testdata"))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("DEMODATA", demodata)
			e.Setenv("DECODERS", decoders)
			e.Setenv("PARQUET", tables)
			e.Setenv("GRAPHS", graphs)
			e.Setenv("GORACE", "atexit_sleep_ms=10") // else every command of a race build waits a second before it exits
			h := &holder{}
			e.Values[holderKey{}] = h
			e.Defer(func() { assert.NoError(t, h.release()) })
			e.Setenv("LONGKEY", strings.Repeat("k", 1025))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":   scriptExits,
			"fails":   scriptFails,
			"hold":    scriptHold,
			"release": scriptRelease,

			"nextsecond": scriptNextSecond,
			"deadsocket": scriptDeadSocket,
			"serve":      scriptServe,
			"interrupt":  scriptInterrupt,
		},
	})
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	code := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if code != want {
		ts.Fatalf("exit code %d, want %d; stderr: %s", code, want, ts.ReadFile("stderr"))
	}
}

func scriptFails(ts *testscript.TestScript, neg bool, args []string) {
	scriptExits(ts, neg, append([]string{"1"}, args...))
	if out := ts.ReadFile("stdout"); out != "" {
		ts.Fatalf("a failing command printed %q", out)
	}
	text := ts.ReadFile("stderr")
	if !strings.HasPrefix(text, "flashdb: ") || strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		ts.Fatalf("want one line flashdb: ... on stderr, have %q", text)
	}
}

func scriptNextSecond(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: nextsecond")
	}
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
}

// A holder keeps the database that its script holds open, itself or by a child.
type holder struct {
	db     *flashdb.DB
	server *server
	child  *exec.Cmd // of a server that was not interrupted
}

func (h *holder) release() (err error) {
	if h.child != nil {
		_ = h.child.Process.Kill()
		_ = h.child.Wait()
		h.child = nil
	}
	if h.db != nil {
		err = h.db.Close()
	}
	h.db = nil
	return err
}

type holderKey struct{}

func scriptHold(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 || (len(args) == 2 && args[1] != "control") {
		ts.Fatalf("usage: hold DIR [control]")
	}
	db, err := flashdb.Open(ts.MkAbs(args[0]), &flashdb.Options{MustExist: true})
	ts.Check(err)
	if len(args) == 2 {
		_, err = control.Serve(db, nil)
		ts.Check(err)
	}
	ts.Value(holderKey{}).(*holder).db = db
}

func scriptRelease(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: release")
	}
	ts.Check(ts.Value(holderKey{}).(*holder).release())
}

func scriptDeadSocket(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: deadsocket DIR")
	}
	short, err := os.MkdirTemp("", "s") // the path of the script's directory may be too long
	ts.Check(err)
	defer os.RemoveAll(short)
	l, err := net.Listen("unix", filepath.Join(short, "s"))
	ts.Check(err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	ts.Check(l.Close())
	ts.Check(os.Rename(filepath.Join(short, "s"), filepath.Join(ts.MkAbs(args[0]), control.SocketName)))
}

// A server is a child that runs flashdb serve.
type server struct {
	cmd    *exec.Cmd
	first  string // line of its output
	out    *bufio.Reader
	errOut bytes.Buffer
}

func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: serve ARGS...")
	}
	program := ""
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if found, err := exec.LookPath(filepath.Join(dir, "flashdb")); err == nil {
			program = found
			break
		}
	}
	s := &server{cmd: exec.Command(program, append([]string{"serve"}, args...)...)}
	s.cmd.Dir = ts.Getenv("WORK")
	s.cmd.Stderr = &s.errOut
	out, err := s.cmd.StdoutPipe()
	ts.Check(err)
	s.out = bufio.NewReader(out)
	ts.Check(s.cmd.Start())
	ts.Value(holderKey{}).(*holder).child = s.cmd
	s.first, err = s.out.ReadString('\n')
	if err != nil {
		ts.Fatalf("serve ended at once: %v", s.cmd.Wait())
	}
	ts.Value(holderKey{}).(*holder).server = s
}

func scriptInterrupt(ts *testscript.TestScript, neg bool, _ []string) {
	h := ts.Value(holderKey{}).(*holder)
	s := h.server
	if neg || s == nil {
		ts.Fatalf("nothing is served")
	}
	h.server, h.child = nil, nil
	ts.Check(s.cmd.Process.Signal(os.Interrupt))
	rest, err := io.ReadAll(s.out)
	ts.Check(err)
	ts.Check(s.cmd.Wait())
	ts.Check(os.WriteFile(ts.MkAbs("serve.out"), []byte(s.first+string(rest)), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("serve.err"), s.errOut.Bytes(), 0o600))
}

func TestScriptsCoverEveryCommand(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "script", "*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	for _, path := range leafPaths(newRoot(nil, nil, nil)) {
		if path != "flashdb demo" && path != "flashdb remote" && !strings.Contains(all.String(), path+" ") { // which have tests of their own
			t.Errorf("no script runs %q", path)
		}
	}
}
