package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRevision: go test records no commit, as go run does not, and the results must name one.
func TestRevision(t *testing.T) {
	head, err := exec.Command("git", "rev-parse", "HEAD").Output()
	if err != nil {
		t.Skipf("this folder is not checked out by git: %v", err)
	}
	commit, _ := strings.CutSuffix(revision(), " with changes")
	assert.Equal(t, string(head[:12]), commit)
}
