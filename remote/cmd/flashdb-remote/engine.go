package main

import (
	"context"
	"fmt"
	"os"

	"github.com/flashdb/flashdb/remote"
	"github.com/flashdb/flashdb/remote/opensearch"
	"github.com/flashdb/flashdb/remote/postgres"
)

// openEngine connects to the engine at an address. The scheme says which.
func openEngine(_ context.Context, address string) (remote.Engine, error) {
	switch scheme(address) {
	case "http", "https":
		c, err := opensearch.FromURL(address, os.Getenv)
		if err != nil {
			return nil, err
		}
		return opensearch.New(c)
	case "postgres", "postgresql":
		c, err := postgres.FromURL(address, os.Getenv)
		if err != nil {
			return nil, err
		}
		return postgres.Open(c)
	}
	return nil, usageError{fmt.Errorf("engine: want http://, https:// or postgres:// at the beginning")}
}
