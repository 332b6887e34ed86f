package opensearch_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb/remote"
	"github.com/flashdb/flashdb/remote/conformance"
	"github.com/flashdb/flashdb/remote/opensearch"
)

// open returns an engine over the cluster at OPENSEARCH_URL, and skips the test without one.
func open(t *testing.T) remote.Engine {
	t.Helper()
	urls := os.Getenv("OPENSEARCH_URL")
	if urls == "" {
		t.Skip("OPENSEARCH_URL is not set: cluster/README.md says how to start a cluster")
	}
	config, err := opensearch.FromURL(urls, os.Getenv)
	require.NoError(t, err)
	e, err := opensearch.New(config)
	require.NoError(t, err)
	return e
}

func TestConformance(t *testing.T) { conformance.Run(t, open) }
