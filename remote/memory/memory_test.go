package memory_test

import (
	"testing"

	"github.com/flashdb/flashdb/remote"
	"github.com/flashdb/flashdb/remote/conformance"
	"github.com/flashdb/flashdb/remote/memory"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, func(*testing.T) remote.Engine { return &memory.Engine{} })
}
