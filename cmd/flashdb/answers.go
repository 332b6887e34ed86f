package main

import (
	"bufio"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/parquet"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
)

// formatJSONLines is the format of answers to very many sources that has all of them; the others
// have one row for each hit, so that a source without hits has none.
const formatJSONLines = "jsonl"

// answerFormats are the formats of predict --all and --keys-from.
var answerFormats = []string{formatJSONLines, formatTSV, formatCSV, formatParquet}

// answerFormat is the format that a request means.
func answerFormat(format, out string) (string, error) {
	if format == "" && (out == "" || out == standardInput || extension(out) == "") {
		return formatJSONLines, nil
	}
	format, err := formatOf(out, format, answerFormats)
	if err == nil && format == formatParquet && (out == "" || out == standardInput) {
		err = errors.New("a .parquet can only be written to a regular file: name one with --out")
	}
	return format, err
}

// appendAnswer writes one answer: a line of JSON, one line for each hit, or for a .parquet what
// joinAnswers makes the rows of.
func appendAnswer(text []byte, format string, res flashdb.Result) []byte {
	switch format {
	case formatTSV:
		for i, h := range res.Hits {
			text = fmt.Appendf(text, "%s\t%d\t%s\t%s\t%s\n", show.Text(res.Source), i+1, show.Text(h.Key), digits(h.Score), digits(h.Probability))
		}
		return text
	case formatCSV:
		var lines strings.Builder
		w := csv.NewWriter(&lines) // neither it nor the builder can fail
		for i, h := range res.Hits {
			_ = w.Write([]string{show.Text(res.Source), strconv.Itoa(i + 1), show.Text(h.Key), digits(h.Score), digits(h.Probability)})
		}
		w.Flush()
		return append(text, lines.String()...)
	case formatParquet:
		return appendRecord(text, res)
	}
	line, err := json.Marshal(struct {
		Source string    `json:"source"`
		Hits   []jsonHit `json:"hits"`
		Short  string    `json:"short,omitempty"`
	}{show.JSON(res.Source), newJSONHits(res.Hits), res.Stats.Short})
	if err != nil {
		panic(err) // strings, and numbers that have a form
	}
	return append(append(text, line...), '\n')
}

// appendRecord writes one answer as bytes, integers little-endian:
//
//	length of source (uvarint), source, number of hits (uvarint),
//	then each hit: length of key (uvarint), key, score, probability (float32)
func appendRecord(text []byte, res flashdb.Result) []byte {
	text = append(binary.AppendUvarint(text, uint64(len(res.Source))), res.Source...)
	text = binary.AppendUvarint(text, uint64(len(res.Hits)))
	for _, h := range res.Hits {
		text = append(binary.AppendUvarint(text, uint64(len(h.Key))), h.Key...)
		text = binary.LittleEndian.AppendUint32(text, math.Float32bits(h.Score))
		text = binary.LittleEndian.AppendUint32(text, math.Float32bits(h.Probability))
	}
	return text
}

// mostRecordKey is longer than any key.
const mostRecordKey = 1 << 16

// readRecords gives every hit of records to fn.
func readRecords(r *bufio.Reader, fn func(parquet.Hit) error) error {
	for {
		if _, err := r.Peek(1); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		source, err := readRecordKey(r)
		if err != nil {
			return err
		}
		hits, err := binary.ReadUvarint(r)
		if err != nil {
			return err
		}
		for i := range hits {
			h := parquet.Hit{Source: source, Rank: int(i) + 1}
			if h.Target, err = readRecordKey(r); err != nil {
				return err
			}
			var scores [8]byte
			if _, err := io.ReadFull(r, scores[:]); err != nil {
				return err
			}
			h.Score = math.Float32frombits(binary.LittleEndian.Uint32(scores[:4]))
			h.Probability = math.Float32frombits(binary.LittleEndian.Uint32(scores[4:]))
			if err := fn(h); err != nil {
				return err
			}
		}
	}
}

func readRecordKey(r *bufio.Reader) (string, error) {
	n, err := binary.ReadUvarint(r)
	if err == nil && n > mostRecordKey {
		err = fmt.Errorf("damaged: a key of %d bytes", n)
	}
	if err != nil {
		return "", err
	}
	key := make([]byte, n)
	_, err = io.ReadFull(r, key)
	return string(key), err
}

// joinAnswers makes a .parquet of records, which are compressed with zstd. They are read twice,
// since its type of keys must be known first. The file depends on nothing but the hits, so that it
// does not show how often its making was interrupted.
func joinAnswers(records io.ReadSeeker, w io.Writer) error {
	binaryKeys := false
	err := unpack(records, func(h parquet.Hit) error {
		binaryKeys = binaryKeys || !utf8.ValidString(h.Source) || !utf8.ValidString(h.Target)
		return nil
	})
	if err != nil {
		return err
	}
	out := parquet.NewHitWriter(w, binaryKeys)
	if err := unpack(records, out.Write); err != nil {
		return err
	}
	return out.Close()
}

// errPieces is matched by the errors of unpack about what it reads.
var errPieces = errors.New("the pieces cannot be read")

func unpack(records io.ReadSeeker, fn func(parquet.Hit) error) error {
	if _, err := records.Seek(0, io.SeekStart); err != nil {
		return err
	}
	z, err := zstd.NewReader(records, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer z.Close()
	var failed error // fn's
	err = readRecords(bufio.NewReaderSize(z, 1<<16), func(h parquet.Hit) error {
		failed = fn(h)
		return failed
	})
	if err != nil && failed == nil {
		err = fmt.Errorf("%w: %w", errPieces, err)
	}
	return err
}
