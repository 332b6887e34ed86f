package memory_test

import (
	"testing"

	"github.com/flashdb/flashdb/remote"
	"github.com/flashdb/flashdb/remote/conformance"
	"github.com/flashdb/flashdb/remote/memory"
)

func TestConformance(t *testing.T) {
	server := &memory.Engine{} // every connection sees the same rows
	conformance.Run(t, func(*testing.T) remote.Engine { return server })
}
