package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestListenForScrapes: an address names its host, so that no slip lets a network in.
func TestListenForScrapes(t *testing.T) {
	for _, bad := range []string{":9187", "127.0.0.1", "9187", "a b:c:d"} {
		_, err := listenForScrapes(bad)
		require.ErrorContains(t, err, "want HOST:PORT, such as 127.0.0.1:9187", bad)
	}
	l, err := listenForScrapes("127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	_, err = listenForScrapes(l.Addr().String())
	assert.ErrorContains(t, err, "--metrics: ", "the port is taken")
}
