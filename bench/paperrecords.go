package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"
)

// paperRecords is the file of what a run of the paper command has finished: a JSON line for each
// part, appended and synced when the part is done. A run that was killed goes on behind the last
// whole line.
type paperRecords struct {
	file    *os.File
	values  map[string]json.RawMessage // by key
	seconds map[string]float64         // that the parts took, by key
	log     io.Writer
}

// paperLine is one line of the file.
type paperLine struct {
	Key     string          `json:"key"`
	Seconds float64         `json:"seconds"` // that the part took
	Value   json.RawMessage `json:"value"`
}

// openPaperRecords reads the file at path, which need not exist, nor its folder, and opens it for
// more. A line that a killed run did not finish is cut off.
func openPaperRecords(path string, log io.Writer) (*paperRecords, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("records: %w", err)
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	r := &paperRecords{values: map[string]json.RawMessage{}, seconds: map[string]float64{}, log: log}
	number := 0
	for line := range bytes.Lines(text[:whole]) {
		number++
		var l paperLine
		if err := json.Unmarshal(line, &l); err != nil {
			return nil, fmt.Errorf("records: %s: line %d: %w: remove the file to start over", path, number, err)
		}
		r.values[l.Key], r.seconds[l.Key] = l.Value, l.Seconds
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	r.file, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("records: %w", err)
	}
	if err := r.file.Truncate(int64(whole)); err != nil {
		return nil, errors.Join(fmt.Errorf("records: %w", err), r.file.Close())
	}
	return r, nil
}

// Close closes the file.
func (r *paperRecords) Close() error { return r.file.Close() }

// add appends one part.
func (r *paperRecords) add(key string, value any, took time.Duration) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("records: %s: %w", key, err)
	}
	line, err := json.Marshal(paperLine{Key: key, Seconds: took.Seconds(), Value: text})
	if err != nil {
		return fmt.Errorf("records: %s: %w", key, err)
	}
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("records: %w", err)
	}
	if err := r.file.Sync(); err != nil {
		return fmt.Errorf("records: %w", err)
	}
	r.values[key], r.seconds[key] = text, took.Seconds()
	return nil
}

// recorded returns the part of a key: from the file where it is there, else measured now and added.
func recorded[T any](r *paperRecords, key string, measure func() (T, error)) (T, error) {
	var value T
	if text, ok := r.values[key]; ok {
		if err := json.Unmarshal(text, &value); err != nil {
			return value, fmt.Errorf("records: %s: %w: remove its line", key, err)
		}
		return value, nil
	}
	began := time.Now()
	value, err := measure()
	if err != nil {
		return value, fmt.Errorf("%s: %w", key, err)
	}
	took := time.Since(began)
	fmt.Fprintf(r.log, "%s: %.1f s\n", key, took.Seconds())
	return value, r.add(key, value, took)
}

// belongs fails unless the records are of a run with these settings, which may name other graphs,
// seeds and decoders beyond the paper's: each part is kept by these. Settings that name new graphs
// are noted.
func (r *paperRecords) belongs(settings paperSettings) error {
	kept, err := recorded(r, "settings", func() (paperSettings, error) { return settings, nil })
	if err != nil {
		return err
	}
	all := maps.Clone(settings.Training)
	maps.Copy(all, kept.Training)
	same := true
	for graph, t := range settings.Training {
		same = same && reflect.DeepEqual(all[graph], t)
	}
	if !same || !reflect.DeepEqual(kept.shared(), settings.shared()) {
		return fmt.Errorf("records: %s is of a run with other settings: name another file by -records, or remove it", r.file.Name())
	}
	if len(all) > len(kept.Training) {
		kept.Training = all
		return r.add("settings", kept, 0)
	}
	return nil
}

// shared is what the settings of runs must share to go on with the same records.
func (s paperSettings) shared() paperSettings {
	s.Graphs, s.Given, s.Triples, s.Seeds, s.Training, s.Beyond = nil, nil, nil, 0, nil, paperBeyond{}
	return s
}

// total is the time that all parts took but the longer training, which has a budget of its own.
func (r *paperRecords) total() time.Duration {
	var sum float64
	for key, s := range r.seconds {
		if !strings.HasPrefix(key, longPrefix) {
			sum += s
		}
	}
	return time.Duration(sum * float64(time.Second))
}
