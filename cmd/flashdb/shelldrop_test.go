package main

import (
	"context"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/control"
)

// TestShellAsksBeforeADrop: who types in a shell is asked, and anything but yes drops nothing.
func TestShellAsksBeforeADrop(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	for answer, dropped := range map[string]bool{"": false, "n": false, "yes ": true} {
		if code, _, errOut := runLine("create", dir, "c", "--dim", "2"); code != 0 {
			require.Contains(t, errOut, "exists")
		}
		db, err := flashdb.Open(dir, nil)
		require.NoError(t, err)
		asked := ""
		a := &app{in: noInput{}, out: io.Discard, err: io.Discard, color: "never", shared: control.Local(db)}
		a.ask = func(_ context.Context, question string) (string, error) {
			asked = question
			return answer, nil
		}
		root := a.tree()
		root.SetArgs([]string{"drop", dir, "c"})
		err = root.ExecuteContext(t.Context())
		assert.Equal(t, dropped, err == nil, err)
		assert.Equal(t, "drop collection c for good: 0 nodes, 0 decoders, no index? [y/N] ", asked)
		names, err := db.Collections(t.Context())
		require.NoError(t, err)
		assert.Equal(t, dropped, len(names) == 0)
		require.NoError(t, db.Close())
	}
}
