package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/internal/wire"
)

// A decoder whose arithmetic overflows gives infinite scores, or NaN. They are written as Infinity,
// -Infinity and NaN in every format, in JSON as text, which has no such numbers: what reads numbers
// from text reads these words in most languages.

// digits writes all digits of a score for programs.
func digits(f float32) string {
	if word, special := wire.Word(float64(f)); special {
		return word
	}
	return strconv.FormatFloat(float64(f), 'g', -1, 32)
}

// score writes a score for people.
func score(f float32) string {
	if word, special := wire.Word(float64(f)); special {
		return word
	}
	return strconv.FormatFloat(float64(f), 'f', 4, 32)
}

// mostDecimals is how many a float32 can need to differ from its neighbours.
const mostDecimals = 9

// scoresOf writes the scores of hits for people: with four decimals, or as many more as it takes to
// see small ones, and that two are not the same.
func scoresOf(hits []flashdb.Hit) []string {
	largest := 0.0
	for _, h := range hits {
		if v := math.Abs(float64(h.Score)); !math.IsInf(v, 0) && !math.IsNaN(v) {
			largest = max(largest, v)
		}
	}
	decimals := 4
	if largest > 0 && largest < 1 {
		decimals = min(mostDecimals, 3-int(math.Floor(math.Log10(largest))))
	}
	texts := make([]string, len(hits))
	for ; ; decimals++ {
		alike := false
		for i, h := range hits {
			texts[i] = score(h.Score)
			if _, special := wire.Word(float64(h.Score)); !special {
				texts[i] = strconv.FormatFloat(float64(h.Score), 'f', decimals, 32)
			}
			alike = alike || i > 0 && texts[i] == texts[i-1] && h.Score != hits[i-1].Score
		}
		if !alike || decimals >= mostDecimals {
			return texts
		}
	}
}

// probability writes a sigmoid without rounding it to a certainty it is not.
func probability(p float32) string {
	s := score(p)
	switch {
	case s == "1.0000" && p < 1:
		return ">.9999"
	case s == "0.0000" && p > 0:
		return "<.0001"
	}
	return s
}

// A jsonNumber is a float in JSON.
type jsonNumber float64

// MarshalJSON implements json.Marshaler.
func (n jsonNumber) MarshalJSON() ([]byte, error) {
	if word, special := wire.Word(float64(n)); special {
		return strconv.AppendQuote(nil, word), nil
	}
	return json.Marshal(float64(n))
}

// String writes two digits of it for people.
func (n jsonNumber) String() string {
	if word, special := wire.Word(float64(n)); special {
		return word
	}
	return fmt.Sprintf("%.2g", float64(n))
}

// jsonScore widens a float32 so that JSON prints its own few digits and not those of its binary
// expansion.
func jsonScore(f float32) jsonNumber {
	v, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		return jsonNumber(f)
	}
	return jsonNumber(v)
}
