package conformance

import (
	"testing"

	"github.com/flashdb/flashdb/remote"
)

// runCollection runs the tests of collections over an engine.
func runCollection(_ *testing.T, _ func(t *testing.T) remote.Engine) {}
