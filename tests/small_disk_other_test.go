//go:build !linux

package tests

import "testing"

func smallDisk(t *testing.T) string {
	t.Skip("a full disk: mounting a small file system is written for Linux only")
	return ""
}

func fewInodes(t *testing.T) string { return smallDisk(t) }

func failingDisk(t *testing.T) (dir string, fail, repair func()) {
	return smallDisk(t), func() {}, func() {}
}

func remount(*testing.T, string, bool) {}
