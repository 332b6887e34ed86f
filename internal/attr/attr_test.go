package attr

import (
	"bytes"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func value(t testing.TB, x any) Value {
	t.Helper()
	v, err := Of(x)
	require.NoError(t, err)
	return v
}

// ascending are values of each kind in their order.
func ascending(t testing.TB) [][]Value {
	day := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	var all [][]Value
	for _, xs := range [][]any{
		{-math.MaxFloat64, -1.5, -math.SmallestNonzeroFloat64, 0, math.SmallestNonzeroFloat64, 1, 1.5, 2, 1e300, math.MaxFloat64},
		{"", "A", "a", "aa", "é"},
		{false, true},
		{time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(-1, 0), time.Unix(0, 0), day, day.Add(time.Microsecond), day.AddDate(7974, 0, 0)},
	} {
		var of []Value
		for _, x := range xs {
			of = append(of, value(t, x))
		}
		all = append(all, of)
	}
	return all
}

func TestOrderAndText(t *testing.T) {
	for _, of := range ascending(t) {
		for i, v := range of {
			back, err := Parse(v.Kind(), v.String())
			require.NoError(t, err)
			assert.Equal(t, v, back, "text %q", v)
			back, err = Decode(v.Append(nil))
			require.NoError(t, err)
			assert.Equal(t, v, back)
			assert.Equal(t, v, value(t, v.Any()))
			for j, w := range of {
				want := 0
				switch {
				case i < j:
					want = -1
				case i > j:
					want = 1
				}
				assert.Equal(t, want, Compare(v, w), "%v and %v", v, w)
				assert.Equal(t, i == j, Point(v).Holds(w))
				assert.Equal(t, j > i, Range{From: Cut{v, true}}.Holds(w))
				assert.Equal(t, j <= i, Range{To: Cut{v, true}}.Holds(w))
			}
			if v.Kind().Fixed() && i > 0 {
				assert.Greater(t, v.Bits(), of[i-1].Bits())
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for _, x := range []any{
		math.NaN(), math.Inf(1), int64(1)<<53 + 1, uint64(1) << 60, nil,
		[]string{"a"},
		string(bytes.Repeat([]byte("x"), MaxString+1)), "\xff",
		time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		_, err := Of(x)
		assert.Error(t, err, "%v", x)
	}
	for _, of := range []struct {
		kind Kind
		text string
	}{{Number, "abc"}, {Number, "0x10"}, {Number, "1_000"}, {Number, "inf"}, {Number, ""}, {Bool, "yes"}, {Time, "2025-13-01"}, {Time, "yesterday"}, {0, "a"}} {
		_, err := Parse(of.kind, of.text)
		assert.Error(t, err, "%v %q", of.kind, of.text)
	}
	assert.Equal(t, value(t, 0), value(t, math.Copysign(0, -1)), "minus zero is zero")
	for _, name := range []string{"", "a\x00b", "a\nb", "\xff", string(bytes.Repeat([]byte("x"), MaxName+1))} {
		assert.Error(t, CheckName(name), "%q", name)
	}
	assert.NoError(t, CheckName("unit price"))
}

func TestGuess(t *testing.T) {
	for text, want := range map[string]Kind{
		"1": Number, "-1e3": Number, "true": Bool, "FALSE": Bool, "2025-01-01": Time, "2025-01-01T10:00:00+02:00": Time,
		"": String, "A1": String, "1,5": String, "NaN": String,
	} {
		assert.Equal(t, want, Guess(text), text)
	}
}

func FuzzDecode(f *testing.F) {
	for _, of := range ascending(f) {
		for _, v := range of {
			f.Add(v.Append(nil))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Decode(b)
		if err != nil {
			return
		}
		require.True(t, slices.Equal(b, v.Append(nil)))
		back, err := Parse(v.Kind(), v.String())
		require.NoError(t, err, "%v %q", v.Kind(), v.String())
		require.Equal(t, v, back)
	})
}
