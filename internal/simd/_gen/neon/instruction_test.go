package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestWords assembles the mnemonic beside each instruction written as a word and
// compares the encodings.
func TestWords(t *testing.T) {
	assembler, err := exec.LookPath("llvm-mc")
	if err != nil {
		t.Skip("llvm-mc is not installed")
	}
	var source, want strings.Builder
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`WORD \$0x(\w{8}) // (.*)`).FindAllStringSubmatch(kernels().code.String(), -1) {
		if seen[m[0]] {
			continue
		}
		seen[m[0]] = true
		var word uint32
		if _, err := fmt.Sscanf(m[1], "%x", &word); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&source, m[2])
		fmt.Fprintf(&want, "[0x%02x,0x%02x,0x%02x,0x%02x] %s\n", byte(word), byte(word>>8), byte(word>>16), byte(word>>24), m[2])
	}
	if len(seen) < 100 {
		t.Fatalf("%d words found", len(seen))
	}
	command := exec.Command(assembler, "-triple=aarch64", "-show-encoding")
	command.Stdin = strings.NewReader(source.String())
	var complaints bytes.Buffer
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, complaints.String())
	}
	encodings := regexp.MustCompile(`encoding: (\[.*\])`).FindAllStringSubmatch(string(out), -1)
	lines := strings.SplitAfter(want.String(), "\n")
	if len(encodings) != len(lines)-1 {
		t.Fatalf("%d encodings of %d words", len(encodings), len(lines)-1)
	}
	for i, e := range encodings {
		if !strings.HasPrefix(lines[i], e[1]) {
			t.Errorf("assembled %s, written %s", e[1], lines[i])
		}
	}
}
