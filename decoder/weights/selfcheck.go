package weights

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/internal/fault"
	"github.com/flashdb/flashdb/internal/codec"
)

// Case is a pair of embeddings and its logit as the framework that trained the decoder computes it.
// Relation and Reverse are as decoder.ForRelation takes them.
type Case struct {
	Source    []float32
	Candidate []float32
	Relation  string // of a decoder with relations
	Reverse   bool   // the candidate is the head, the source the tail
	Logit     float64
}

const (
	// checkTolerance is the relative difference of logits SelfCheck allows by default: well above
	// what float32 costs, well below what a wrong activation or norm does.
	checkTolerance = 1e-4

	// checkFloor is what a difference is taken relative to when the logit is nearer to zero.
	checkFloor = 0.1
)

// SelfCheck compares the decoder with cases and returns an error that names the first one whose
// logit differs by more than tolerance, relative to the larger of the expected logit and 0.1. A
// tolerance of 0 means 1e-4. Cases are counted from 1.
func SelfCheck(d decoder.Decoder, cases []Case, tolerance float64) error {
	if len(cases) == 0 {
		return errors.New("self-check: no cases")
	}
	if tolerance == 0 {
		tolerance = checkTolerance
	}
	var scratch decoder.Scratch
	got := make([]float32, 1)
	for i, c := range cases {
		if len(c.Source) != d.Dim() || len(c.Candidate) != d.Dim() {
			return fmt.Errorf("self-check: case %d of %d has a source of %d values and a candidate of %d; the decoder's dim is %d",
				i+1, len(cases), len(c.Source), len(c.Candidate), d.Dim())
		}
		of, err := decoder.ForRelation(d, c.Relation, c.Reverse)
		if err != nil {
			return fmt.Errorf("self-check: case %d of %d: %w", i+1, len(cases), err)
		}
		of.Bind(nil, c.Source).Score(&scratch, got, c.Candidate)
		difference := math.Abs(float64(got[0])-c.Logit) / max(math.Abs(c.Logit), checkFloor)
		if !(difference <= tolerance) { // NaN is a difference too
			return fmt.Errorf("self-check: case %d of %d: the logit is %.7g here and %.7g expected, a relative difference of %.2g (at most %.2g "+
				"allowed): the spec does not describe the model these weights are of; check its activations, norms and residuals",
				i+1, len(cases), got[0], c.Logit, difference, tolerance)
		}
	}
	return nil
}

// maxCaseLine bounds the length of a line of cases: two embeddings and a gradient of the largest
// dim, written out.
const maxCaseLine = 8 << 20

// ReadCases reads a .jsonl file of cases, one per line: {"source": [...], "candidate": [...],
// "logit": number}, and for a decoder with relations "relation": name and perhaps "reverse": true.
// Other fields are ignored.
func ReadCases(path string) ([]Case, error) {
	f, _, err := codec.OpenRegular(path)
	if err != nil {
		return nil, fmt.Errorf("read cases: %w", err)
	}
	defer f.Close()
	cases, err := parseCases(f)
	if err != nil {
		return nil, fmt.Errorf("read cases %s: %w", path, err)
	}
	return cases, nil
}

// utf8Mark is the byte order mark that some editors put before text.
var utf8Mark = []byte("\xef\xbb\xbf")

func parseCases(r io.Reader) ([]Case, error) {
	var cases []Case
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxCaseLine)
	n := 0
	for lines.Scan() {
		n++
		line := lines.Bytes()
		if n == 1 {
			line = bytes.TrimPrefix(line, utf8Mark)
		}
		if len(line) == 0 {
			continue
		}
		c, err := parseCase(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, fmt.Errorf("line %d: longer than %d bytes", n+1, maxCaseLine)
	} else if err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if len(cases) == 0 {
		return nil, errors.New(`no cases; want lines {"source": [...], "candidate": [...], "logit": number}`)
	}
	return cases, nil
}

func parseCase(line []byte) (Case, error) {
	var fields struct {
		Source    []float32 `json:"source"`
		Candidate []float32 `json:"candidate"`
		Relation  string    `json:"relation"`
		Reverse   bool      `json:"reverse"`
		Logit     *float64  `json:"logit"`
	}
	if err := json.Unmarshal(line, &fields); err != nil {
		return Case{}, fault.JSON(err)
	}
	if len(fields.Source) == 0 || len(fields.Candidate) == 0 || fields.Logit == nil {
		return Case{}, errors.New(`want an object with "source", "candidate" and "logit"`)
	}
	return Case{fields.Source, fields.Candidate, fields.Relation, fields.Reverse, *fields.Logit}, nil
}
