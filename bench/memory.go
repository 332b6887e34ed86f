package main

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A memoryPeak is the most memory that was resident, in bytes. Both are zero where there is no
// /proc.
type memoryPeak struct {
	// resident counts everything, mapped files with it: VmHWM.
	resident int64
	// anonymous leaves mapped files out, the index and the bbolt file, whose pages the kernel may
	// drop whenever it wants. It is sampled.
	anonymous int64
}

// A memoryWatch looks for the peak from the moment it was made.
type memoryWatch struct {
	once sync.Once
	quit chan struct{}
	done chan memoryPeak
	peak memoryPeak
}

// sampleEvery is short beside a stage, and long beside the tens of microseconds that a look takes.
const sampleEvery = 50 * time.Millisecond

// watchMemory starts to watch this process; stop must be called.
func watchMemory() *memoryWatch {
	w := &memoryWatch{quit: make(chan struct{}), done: make(chan memoryPeak)}
	// 5 makes VmHWM start anew. Where that is refused it is the peak since the process started,
	// which is still a bound.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
	go func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		var peak memoryPeak
		for {
			now := processMemory()
			peak.resident = max(peak.resident, now["VmHWM"])
			peak.anonymous = max(peak.anonymous, now["RssAnon"])
			select {
			case <-tick.C:
			case <-w.quit:
				w.done <- peak
				return
			}
		}
	}()
	return w
}

// stop ends the watch and returns the peak; it may be called again.
func (w *memoryWatch) stop() memoryPeak {
	w.once.Do(func() {
		close(w.quit)
		w.peak = <-w.done
	})
	return w.peak
}

// processMemory returns the figures of /proc/self/status, in bytes.
func processMemory() map[string]int64 {
	return parseKilobytes("/proc/self/status")
}

// parseKilobytes reads the lines "Name: number kB" of a file of /proc.
func parseKilobytes(path string) map[string]int64 {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil // not Linux
	}
	figures := map[string]int64{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		name, rest, _ := strings.Cut(lines.Text(), ":")
		number, isKB := strings.CutSuffix(strings.TrimSpace(rest), " kB")
		if kb, err := strconv.ParseInt(number, 10, 64); isKB && err == nil {
			figures[name] = kb << 10
		}
	}
	return figures
}
