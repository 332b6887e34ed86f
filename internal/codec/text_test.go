package codec

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestJSONRows(t *testing.T) {
	r, err := ParseRows("x.jsonl", []byte("\xef\xbb\xbf"+`{"key":"a","embedding":[1,2],"tags":["x","y z"],"payload":{"n": [1, 2]}}
{"key":17,"embedding":[3,4],"payload":"text é \n"}
{"key":"","embedding":[5,6],"payload":null,"tags":[]}

{"embedding":[7,8],"key":null,"payload":3}
`))
	require.NoError(t, err)
	require.Equal(t, 2, r.Dim())
	require.EqualValues(t, -1, r.Count())
	dst := make([]float32, 2)
	want := []Row{
		{Key: "a", HasKey: true, Tags: []string{"x", "y z"}, Payload: []byte(`{"n": [1, 2]}`)},
		{Key: "17", HasKey: true, Payload: []byte("text é \n")},
		{HasKey: true, Tags: []string{}},
		{Payload: []byte("3")},
	}
	for i, line := range []int{1, 2, 3, 5} {
		row, err := r.Next(dst)
		require.NoError(t, err)
		require.Equal(t, want[i], row)
		require.Equal(t, []float32{float32(2*i + 1), float32(2*i + 2)}, dst)
		require.Equal(t, fmt.Sprintf("line %d", line), r.Position())
	}
	_, err = r.Next(dst)
	require.Equal(t, io.EOF, err)
}

func TestJSONRowsRefused(t *testing.T) {
	for line, want := range map[string]string{
		`null`:                                 `no values under "embedding"`,
		`[1,2]`:                                "line 1",
		`{}`:                                   `no values under "embedding"`,
		`{"embedding":[]}`:                     `no values under "embedding"`,
		`{"embedding":null}`:                   "is not an array of numbers",
		`{"embedding":"1"}`:                    "is not an array of numbers",
		`{"embedding":[1,null]}`:               `embedding[1]: "null" is not a float32`,
		`{"embedding":[1,"2"]}`:                `embedding[1]: "\"2\"" is not a float32`,
		`{"embedding":[[1]]}`:                  `embedding[0]: "[1" is not a float32`,
		`{"embedding":[1e39]}`:                 `embedding[0]: "1e39" is not a float32`,
		`{"embedding":[NaN]}`:                  "invalid character 'N'",
		`{"vector":[1]}`:                       `unknown field "vector"`,
		`{"embedding":[1],"tag":"x"}`:          `unknown field "tag"`,
		`{"embedding":[1]} {}`:                 "text after the JSON object",
		`{"embedding":[1],"tags":"x"}`:         "tags",
		"{\"embedding\":[1],\"key\":\"\xff\"}": "not UTF-8",
		`{"embedding":[1`:                      "unexpected EOF",
		`{"embedding":[1],"key":` + "\"a\tb\"" + `}`: "invalid character",
	} {
		_, err := ParseRows("x.jsonl", []byte(line))
		at := requireFault(t, err, "x.jsonl", want)
		require.Equal(t, 1, at.Line)
		require.LessOrEqual(t, at.Offset, int64(len(line)))
	}
	for key, want := range map[string]string{`1.5`: "want a string or an integer", `{"a":1}`: "want a string or an integer", `true`: "want a string or an integer"} {
		r, err := ParseRows("x.jsonl", []byte(`{"embedding":[1],"key":`+key+`}`))
		require.NoError(t, err)
		_, err = r.Next(make([]float32, 1))
		requireFault(t, err, "x.jsonl", want)
	}
}

func TestCSVRows(t *testing.T) {
	type keyed struct {
		key    string
		values []float32
	}
	tests := []struct {
		name, file, text string
		keys             bool
		want             []keyed
	}{
		{"numbers", "x.csv", "1,2\n3,4", false, []keyed{{"", []float32{1, 2}}, {"", []float32{3, 4}}}},
		{"keys", "x.csv", "a,1\n7,2\n", true, []keyed{{"a", []float32{1}}, {"7", []float32{2}}}},
		{"header without keys", "x.csv", "v0,v1\n1,2\n", false, []keyed{{"", []float32{1, 2}}}},
		{"header, keys by their look", "x.csv", "paper,v0\na,2\n", true, []keyed{{"a", []float32{2}}}},
		{"header, numeric keys", "x.csv", "ID,v0\n17,2\n", true, []keyed{{"17", []float32{2}}}},
		{"header of numbers, as pandas writes it", "x.csv", ",0,1\n0,0.5,-1e-3\n", true, []keyed{{"0", []float32{0.5, -1e-3}}}},
		{"quotes", "x.csv", "\"a, \"\"b\"\"\",1,\" 2\"\n\"\",3,\"4\"\n", true, []keyed{{`a, "b"`, []float32{1, 2}}, {"", []float32{3, 4}}}},
		{"spaces", "x.csv", "k , 1 ,2 \n", true, []keyed{{"k ", []float32{1, 2}}}},
		{"tabs keep quotes", "x.tsv", "\"a\"\t1\n", true, []keyed{{`"a"`, []float32{1}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := ParseRows(tt.file, []byte(tt.text))
			require.NoError(t, err)
			values, rows := readAll(t, r)
			require.Len(t, rows, len(tt.want))
			for i, want := range tt.want {
				require.Equal(t, Row{Key: want.key, HasKey: tt.keys}, rows[i])
				require.Equal(t, want.values, values[i])
			}
		})
	}
}

// TestLongLines: lines far beyond the read buffer are whole; beyond the limit they are refused.
func TestLongLines(t *testing.T) {
	wide := strings.Repeat("0.125,", 99_999) + "0.125\n"
	r, err := ParseRows("x.csv", []byte(wide+wide))
	require.NoError(t, err)
	values, _ := readAll(t, r)
	require.Len(t, values, 2)
	require.Len(t, values[1], 100_000)

	_, err = ParseRows("x.csv", []byte("1,2\n"+strings.Repeat("1", maxLine+1)))
	require.NoError(t, err)
	_, err = ParseRows("x.csv", []byte(strings.Repeat("1", maxLine+1)))
	requireFault(t, err, "x.csv", "line 1: longer than 4194304 bytes")

	table, err := ParseTable("x.tsv", []byte("a\tb\n"+strings.Repeat("c", maxLine)+"\td"))
	require.NoError(t, err)
	_, _, err = table.Next()
	require.NoError(t, err)
	_, _, err = table.Next()
	requireFault(t, err, "x.tsv", "line 2: byte 4: longer than")
	_, _, again := table.Next()
	require.Equal(t, err, again)
}

func TestTable(t *testing.T) {
	text := []byte("0\tnet/http.Get\tfunc\r\n\n1\t\n# not a comment\n" + strings.Repeat("x", 200_000) + "\ty")
	want := []struct {
		line   int
		fields []string
	}{
		{1, []string{"0", "net/http.Get", "func"}},
		{3, []string{"1", ""}},
		{4, []string{"# not a comment"}},
		{5, []string{strings.Repeat("x", 200_000), "y"}},
	}
	for name, data := range map[string][]byte{"x.tsv": text, "x.tsv.zst": zst(t, text), "x.tsv.gz": gz(t, text)} {
		table, err := OpenTable(written(t, name, data), nil)
		require.NoError(t, err)
		for _, w := range want {
			fields, line, err := table.Next()
			require.NoError(t, err)
			require.Equal(t, w.line, line)
			require.Equal(t, w.fields, fields)
		}
		_, _, err = table.Next()
		require.Equal(t, io.EOF, err)
		require.NoError(t, table.Close())
	}
	cut, err := ParseTable("x.tsv.zst", zst(t, text)[:30])
	for err == nil {
		_, _, err = cut.Next()
	}
	requireFault(t, err, "x.tsv.zst", "zstd: truncated")
}

func TestRealTables(t *testing.T) {
	for file, want := range map[string]int{"nodes.tsv.zst": 33445} {
		table, err := OpenTable(filepath.Join(bigData(t), "go-stdlib", file), nil)
		require.NoError(t, err)
		lines := 0
		for {
			fields, line, err := table.Next()
			if err == io.EOF {
				break
			}
			require.NoError(t, err)
			lines++
			require.Equal(t, lines, line)
			require.GreaterOrEqual(t, len(fields), 2)
		}
		require.Equal(t, want, lines)
		require.NoError(t, table.Close())
	}
}
