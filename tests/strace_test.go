package tests

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/internal/attempts"
)

// straced returns a command that runs another with a fault at the nth time one of its threads makes
// a system call.
func straced(call, fault string, n int) []string {
	return []string{"strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:%s:when=%d", call, fault, n)}
}

func needStrace(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("faults of system calls, bbolt's among them: strace is not installed")
	}
	if out, err := exec.Command("strace", "-f", "-o", "/dev/null", "-e", "inject=fsync:error=EIO", "true").CombinedOutput(); err != nil {
		t.Skipf("faults of system calls, bbolt's among them: strace may not trace here: %v: %s", err, out)
	}
}

// TestSystemCalls kills a process at the nth system call of a kind, or makes that call, or it and
// all after it, fail: bbolt's own calls, too. FLASHDB_SYSCALLS says how many times each.
func TestSystemCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("what is checked is what a killed process left behind")
	}
	needStrace(t)
	rounds := envInt(t, "FLASHDB_SYSCALLS", 1)
	first := seed(t)
	rng := rand.New(rand.NewPCG(first, 0))
	calls := []string{"fsync", "fdatasync", "pwrite64", "renameat", "unlinkat", "ftruncate"}
	faults := []string{"signal=SIGKILL", "error=EIO", "error=ENOSPC", "error=EDQUOT"}
	root := t.TempDir()
	hit, lives := map[string]int{}, 0
	var writes int64
	for _, call := range calls {
		for _, fault := range faults {
			s := newSaga(t, filepath.Join(root, call+fault), first)
			s.life.Writes = 25
			for range rounds {
				n := 1 + rng.IntN(12)
				s.run(0, straced(call, fault, n)...)
				s.verify()
				lives++
				if !s.closed || len(s.errors) > 0 {
					hit[call+" "+fault]++
				}
				for _, e := range s.errors {
					assert.Regexp(t, `input/output error|no space left on device|disk quota exceeded`, e, "%s %s at %d", call, fault, n)
				}
				require.False(t, t.Failed(), "%s %s at %d", call, fault, n)
			}
			writes += s.total
		}
	}
	attempts.Count(t, lives, "processes")
	attempts.Count(t, int(writes), "acknowledged batches compared")
	t.Logf("%d lives, of which these ended early: %v; %d acknowledged writes, all there", lives, hit, writes)
}
