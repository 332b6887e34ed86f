//go:build !linux

package flashdb_test

import "testing"

func smallDisk(t *testing.T) string {
	t.Skip("a full disk: mounting a small file system is written for Linux only")
	return ""
}
