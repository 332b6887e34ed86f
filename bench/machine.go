package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kernelFeatures are the processor flags that decide which kernels flashdb takes: AVX-512 with F,
// BW, VL and DQ, else AVX2 with FMA, else plain Go.
var kernelFeatures = []string{"avx2", "fma", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512vbmi", "gfni", "avx512_vnni"}

// busyLoad is a load at which other programs disturb the figures.
const busyLoad = 0.5

// thisMachine describes what the figures are measured on, and warns where it is busy. What the
// system does not tell stays empty.
func thisMachine(log io.Writer) machineRecord {
	m := machineRecord{
		Kind:     kindMachine,
		OS:       runtime.GOOS,
		Arch:     runtime.GOARCH,
		Cores:    runtime.NumCPU(),
		Go:       runtime.Version(),
		Revision: revision(),
		Date:     time.Now().UTC().Format(time.DateOnly),
	}
	m.MemoryBytes = parseKilobytes("/proc/meminfo")["MemTotal"]
	m.Load = load()
	if load, err := strconv.ParseFloat(m.Load, 64); err == nil && load > busyLoad {
		fmt.Fprintf(log, "the machine is busy (load %s): times will be noisy, ratios less so\n", m.Load)
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		m.CPU = cpuField(string(text), "model name")
		flags := strings.Fields(cpuField(string(text), "flags"))
		for _, f := range kernelFeatures {
			if slices.Contains(flags, f) {
				m.Features = append(m.Features, f)
			}
		}
	}
	return m
}

// load is the mean number of processes that ran in the last minute, or empty where the system does
// not tell.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// cpuField returns the first processor's value of a field of /proc/cpuinfo.
func cpuField(cpuinfo, name string) string {
	for line := range strings.Lines(cpuinfo) {
		field, value, _ := strings.Cut(line, ":")
		if strings.TrimSpace(field) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// revision is the commit the program was built from. go build records it, go run does not: then git
// tells that of the folder of this file. It is empty where nothing tells.
func revision() string {
	commit, changed := recordedRevision()
	if commit == "" {
		commit, changed = checkedOut()
	}
	if commit == "" {
		return ""
	}
	commit = commit[:min(12, len(commit))]
	if changed {
		commit += " with changes"
	}
	return commit
}

// recordedRevision is the commit that go build recorded, and whether files differed from it.
func recordedRevision() (commit string, changed bool) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "", false
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = s.Value
		case "vcs.modified":
			changed = s.Value == "true"
		}
	}
	return commit, changed
}

// checkedOut is the commit that git has checked out around this file, and whether files differ from
// it.
func checkedOut() (commit string, changed bool) {
	_, file, _, _ := runtime.Caller(0)
	dir := filepath.Dir(file)
	head, err := exec.Command("git", "-C", dir, "rev-parse", "HEAD").Output()
	if err != nil {
		return "", false
	}
	status, err := exec.Command("git", "-C", dir, "status", "--porcelain").Output()
	return strings.TrimSpace(string(head)), err != nil || len(status) > 0
}
