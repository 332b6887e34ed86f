package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// An oracleLine is the exact answer of one source as an oracle file gives it: rows of the imported
// file, best first.
type oracleLine struct {
	Source int64     `json:"source"`
	Top    []int64   `json:"top"`
	Logit  []float64 `json:"logit"`
}

// readOracle reads at most limit lines (0: all) of at least k answers each.
func readOracle(file tableFile, k, limit int) (lines []oracleLine, err error) {
	table, err := file.open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	for limit == 0 || len(lines) < limit {
		fields, number, err := table.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		line, err := parseOracleLine(strings.Join(fields, "\t"), k)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", file.name, number, err)
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return nil, fmt.Errorf("%s holds no sources", file.name)
	}
	return lines, nil
}

func parseOracleLine(text string, k int) (oracleLine, error) {
	var fields struct {
		Source *int64    `json:"source"`
		Top    []int64   `json:"top"`
		Logit  []float64 `json:"logit"`
	}
	if err := json.Unmarshal([]byte(text), &fields); err != nil {
		return oracleLine{}, errors.New(`not a line of an oracle, {"source": row, "top": [rows], "logit": [numbers]}`)
	}
	switch {
	case fields.Source == nil:
		return oracleLine{}, errors.New(`it has no "source"`)
	case len(fields.Top) != len(fields.Logit):
		return oracleLine{}, fmt.Errorf(`"top" has %d rows and "logit" %d numbers`, len(fields.Top), len(fields.Logit))
	case len(fields.Top) < k:
		return oracleLine{}, fmt.Errorf("it lists %d answers, too few to measure recall@%d: use a smaller -k", len(fields.Top), k)
	}
	for i := 1; i < len(fields.Logit); i++ {
		if fields.Logit[i] > fields.Logit[i-1] {
			return oracleLine{}, fmt.Errorf("answer %d scores more than the one before it: they must be best first", i+1)
		}
	}
	return oracleLine{*fields.Source, fields.Top, fields.Logit}, nil
}

// truth names the answers by key.
func (l oracleLine) truth(nodes *nodeIndex, k int) (truth, error) {
	t := truth{keys: make([]string, k), scores: l.Logit[:k]}
	for i, row := range l.Top[:k] {
		id, err := nodes.byRow(row)
		if err != nil {
			return truth{}, err
		}
		t.keys[i] = nodes.keys[id]
	}
	return t, nil
}
