// Package attr is the values of the typed attributes of nodes: numbers, strings, bools and times.
// It has their order, their text and their bytes.
//
// A Value is immutable, comparable with ==, and safe for concurrent use.
package attr

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// A Kind is the type of a value. The numbers are on disk: they never change their meaning.
type Kind uint8

// The kinds.
const (
	Number Kind = 1 + iota // a float64 that is finite
	String
	Bool
	Time  // to the microsecond, in UTC
	kinds = iota
)

var kindNames = [...]string{Number: "number", String: "string", Bool: "bool", Time: "time"}

// String returns the name of the kind, such as "number".
func (k Kind) String() string {
	if !k.Valid() {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// Valid reports whether there is such a kind.
func (k Kind) Valid() bool { return k >= 1 && k <= kinds }

// Fixed reports whether values of the kind are Bits, and not texts.
func (k Kind) Fixed() bool { return k != String }

// ParseKind returns the kind of that name.
func ParseKind(name string) (Kind, error) {
	if k := slices.Index(kindNames[:], name); k > 0 {
		return Kind(k), nil
	}
	return 0, fmt.Errorf("type %q is unknown: use number, string, bool or time", name)
}

// Limits of names and strings, in bytes.
const (
	MaxName   = 256
	MaxString = 256
)

// A Value is one value of a kind. The zero Value is none.
type Value struct {
	kind Kind
	bits uint64 // of all kinds but String: in the order of the values
	text string // of a String
}

// A Named is a value with the name of its attribute.
type Named struct {
	Name string
	Value
}

// Compare orders by name.
func (n Named) Compare(o Named) int { return strings.Compare(n.Name, o.Name) }

// CheckName refuses what cannot be the name of an attribute.
func CheckName(name string) error {
	if len(name) == 0 || len(name) > MaxName || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return fmt.Errorf("attribute name %q must be valid UTF-8 of 1 to %d bytes without control characters", name[:min(len(name), 64)], MaxName)
	}
	return nil
}

// OfNumber returns the value of a number that is finite.
func OfNumber(x float64) (Value, error) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return Value{}, fmt.Errorf("%v is not a finite number", x)
	}
	if x == 0 {
		x = 0 // minus zero is zero
	}
	bits := math.Float64bits(x)
	if bits>>63 != 0 {
		return Value{kind: Number, bits: ^bits}, nil
	}
	return Value{kind: Number, bits: bits | 1<<63}, nil
}

// OfString returns the value of a text.
func OfString(s string) (Value, error) {
	if len(s) > MaxString || !utf8.ValidString(s) {
		return Value{}, fmt.Errorf("string %q of %d bytes: want valid UTF-8 of at most %d bytes", s[:min(len(s), 40)], len(s), MaxString)
	}
	return Value{kind: String, text: s}, nil
}

// OfBool returns the value of a bool.
func OfBool(b bool) Value {
	v := Value{kind: Bool}
	if b {
		v.bits = 1
	}
	return v
}

// OfTime returns the value of a time, cut to the microsecond.
func OfTime(t time.Time) (Value, error) {
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		return Value{}, fmt.Errorf("year %d is outside 0 to 9999", y)
	}
	return ofMicro(t.UnixMicro()), nil
}

func ofMicro(us int64) Value { return Value{kind: Time, bits: uint64(us) ^ 1<<63} }

// Of returns the value of a Go value: of a bool, string, time.Time, or any integer or float.
func Of(x any) (Value, error) {
	switch x := x.(type) {
	case float64:
		return OfNumber(x)
	case float32:
		return OfNumber(float64(x))
	case int:
		return ofInt(int64(x))
	case int8:
		return ofInt(int64(x))
	case int16:
		return ofInt(int64(x))
	case int32:
		return ofInt(int64(x))
	case int64:
		return ofInt(x)
	case uint8:
		return ofInt(int64(x))
	case uint16:
		return ofInt(int64(x))
	case uint32:
		return ofInt(int64(x))
	case uint:
		return ofUint(uint64(x))
	case uint64:
		return ofUint(x)
	case string:
		return OfString(x)
	case bool:
		return OfBool(x), nil
	case time.Time:
		return OfTime(x)
	case Value:
		return x, nil
	}
	return Value{}, fmt.Errorf("a %T is no attribute: use a number, string, bool or time.Time", x)
}

// mostInt is up to where every integer is a float64.
const mostInt = 1 << 53

func ofInt(i int64) (Value, error) {
	if i > mostInt || i < -mostInt {
		return Value{}, fmt.Errorf("%d is beyond the integers that a number holds exactly: store it as a string", i)
	}
	return OfNumber(float64(i))
}

func ofUint(u uint64) (Value, error) {
	if u > mostInt {
		return Value{}, fmt.Errorf("%d is beyond the integers that a number holds exactly: store it as a string", u)
	}
	return OfNumber(float64(u))
}

// Kind returns the kind, 0 for the zero Value.
func (v Value) Kind() Kind { return v.kind }

// Bits returns 64 bits in the order of the values of a kind that is Fixed.
func (v Value) Bits() uint64 { return v.bits }

// OfBits returns the value that has the Bits, if there is one.
func OfBits(k Kind, bits uint64) (Value, error) {
	v := Value{kind: k, bits: bits}
	switch k {
	case Number:
		if x := v.number(); math.IsNaN(x) || math.IsInf(x, 0) || bits == 1<<63-1 { // the last is minus zero
			return Value{}, fmt.Errorf("bits %#x are no number", bits)
		}
	case Bool:
		if bits > 1 {
			return Value{}, fmt.Errorf("bits %#x are no bool", bits)
		}
	case Time:
		if y := v.time().Year(); y < 0 || y > 9999 {
			return Value{}, fmt.Errorf("bits %#x are a time in year %d", bits, y)
		}
	default:
		return Value{}, fmt.Errorf("values of %v have no bits", k)
	}
	return v, nil
}

// Text returns the text of a String.
func (v Value) Text() string { return v.text }

func (v Value) number() float64 {
	if v.bits>>63 != 0 {
		return math.Float64frombits(v.bits &^ (1 << 63))
	}
	return math.Float64frombits(^v.bits)
}

func (v Value) time() time.Time { return time.UnixMicro(int64(v.bits ^ 1<<63)).UTC() }

// Any returns the value as a float64, string, bool or time.Time, nil for the zero Value.
func (v Value) Any() any {
	switch v.kind {
	case Number:
		return v.number()
	case String:
		return v.text
	case Bool:
		return v.bits != 0
	case Time:
		return v.time()
	}
	return nil
}

// Compare orders values by kind, and those of one kind as one expects.
func Compare(a, b Value) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.bits, b.bits), strings.Compare(a.text, b.text))
}

// String returns the value as text that Parse reads: 12.5, true, 2025-01-01 or
// 2025-01-01T10:00:00Z, and a string as it is.
func (v Value) String() string {
	switch v.kind {
	case Number:
		return strconv.FormatFloat(v.number(), 'g', -1, 64)
	case Bool:
		return strconv.FormatBool(v.bits != 0)
	case Time:
		t := v.time()
		if h, m, s := t.Clock(); h+m+s+t.Nanosecond() == 0 {
			return t.Format(time.DateOnly)
		}
		return t.Format(time.RFC3339Nano)
	}
	return v.text
}

// Parse reads a value of a kind. A time is a day, such as 2025-01-01, or as in RFC 3339.
func Parse(k Kind, text string) (Value, error) {
	switch k {
	case Number:
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || strings.ContainsAny(text, "xX_pP") {
			return Value{}, fmt.Errorf("%q is not a number", text[:min(len(text), 40)])
		}
		return OfNumber(x)
	case Bool:
		switch strings.ToLower(text) {
		case "true":
			return OfBool(true), nil
		case "false":
			return OfBool(false), nil
		}
		return Value{}, fmt.Errorf("%q is not a bool: use true or false", text[:min(len(text), 40)])
	case Time:
		t, _, err := ParseTime(text)
		if err != nil {
			return Value{}, err
		}
		return OfTime(t)
	case String:
		return OfString(text)
	}
	return Value{}, fmt.Errorf("%v is unknown", k)
}

var errNoTime = errors.New("not a time: write 2025-01-01, or 2025-01-01T10:00:00Z")

// ParseTime reads a day, in UTC, or a time as in RFC 3339.
func ParseTime(text string) (t time.Time, day bool, err error) {
	if t, err = time.Parse(time.DateOnly, text); err == nil {
		return t, true, nil
	}
	if t, err = time.Parse(time.RFC3339Nano, text); err == nil {
		return t, false, nil
	}
	return t, false, fmt.Errorf("%q is %w", text[:min(len(text), 40)], errNoTime)
}

// Guess returns the kind of which a text looks: bool, number, time, or else string.
func Guess(text string) Kind {
	for _, k := range []Kind{Bool, Number, Time} {
		if _, err := Parse(k, text); err == nil {
			return k
		}
	}
	return String
}

// Append appends the bytes of a value: its kind, and then 8 bytes, little-endian, or its text.
func (v Value) Append(b []byte) []byte {
	b = append(b, byte(v.kind))
	if v.kind.Fixed() {
		return binary.LittleEndian.AppendUint64(b, v.bits)
	}
	return append(b, v.text...)
}

// Decode reads the bytes that Append wrote.
func Decode(b []byte) (Value, error) {
	if len(b) == 0 || !Kind(b[0]).Valid() {
		return Value{}, errors.New("an attribute of unknown type")
	}
	k, b := Kind(b[0]), b[1:]
	if !k.Fixed() {
		return OfString(string(b))
	}
	if len(b) != 8 {
		return Value{}, fmt.Errorf("a %v of %d bytes, want 8", k, len(b))
	}
	return OfBits(k, binary.LittleEndian.Uint64(b))
}
