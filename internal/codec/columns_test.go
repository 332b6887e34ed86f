package codec

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// opened reads all rows of data under named columns.
func opened(t *testing.T, name, data string, columns Columns) (values [][]float32, rows []Row, err error) {
	t.Helper()
	r, err := OpenRows(written(t, name, []byte(data)), &RowOptions{Columns: columns})
	if err != nil {
		return nil, nil, err
	}
	defer func() { require.NoError(t, r.Close()) }()
	for {
		dst := make([]float32, r.Dim())
		row, err := r.Next(dst)
		if err == io.EOF {
			return values, rows, nil
		}
		if err != nil {
			return values, rows, err
		}
		values, rows = append(values, dst), append(rows, row)
	}
}

func TestNamedColumns(t *testing.T) {
	values, rows, err := opened(t, "x.csv", "a,node,b,labels,note\n1,k1,2,\"x;y\",hello\n3,k2,4,,\n", Columns{Key: "node", Tags: "labels", Payload: "note"})
	require.NoError(t, err)
	assert.Equal(t, [][]float32{{1, 2}, {3, 4}}, values)
	assert.Equal(t, []Row{{Key: "k1", HasKey: true, Tags: []string{"x", "y"}, Payload: []byte("hello")}, {Key: "k2", HasKey: true, Payload: []byte{}}}, rows)

	values, rows, err = opened(t, "x.tsv", "key\ttags\tv\n7\t[\"a;b\"]\t1\n", Columns{})
	require.NoError(t, err, "the usual names beside a key in front")
	assert.Equal(t, [][]float32{{1}}, values)
	assert.Equal(t, []Row{{Key: "7", HasKey: true, Tags: []string{"a;b"}}}, rows)

	_, rows, err = opened(t, "x.csv", "id,group,v\n7,g,1\n", Columns{Tags: "group"})
	require.NoError(t, err, "the key keeps its usual name")
	assert.Equal(t, []Row{{Key: "7", HasKey: true, Tags: []string{"g"}}}, rows)

	values, rows, err = opened(t, "x.csv", "1,2\n3,4\n", Columns{Key: "1"})
	require.NoError(t, err, "with named columns the first line is the header, whatever it is")
	assert.Equal(t, [][]float32{{4}}, values)
	assert.Equal(t, []Row{{Key: "3", HasKey: true}}, rows)

	for name, test := range map[string]struct {
		data    string
		columns Columns
		want    string
	}{
		"absent":     {"a,b\n1,2\n", Columns{Key: "k"}, `no column is named "k"; the header has "a", "b"`},
		"two of one": {"k,b,k\n1,2,3\n", Columns{Key: "k"}, `2 columns are named "k"`},
		"two things": {"k,b\n1,2\n", Columns{Key: "k", Payload: "k"}, `column "k" is named for two things`},
		"tags":       {"key,tags,v\na,[1],2\n", Columns{}, `field 2: tags "[1]": want a JSON array of strings`},
		"short":      {"key,tags,v\na,t,2\nb,2\n", Columns{}, "1 values, the first row has"},
		"embedding":  {"a,b\n1,2\n", Columns{Embedding: "a"}, "no columns of embeddings"},
	} {
		_, _, err := opened(t, "x.csv", test.data, test.columns)
		if name == "short" {
			require.ErrorContains(t, err, "0 values, the first row has 1")
			continue
		}
		require.ErrorContains(t, err, test.want, name)
	}
}

func TestTags(t *testing.T) {
	for _, tags := range [][]string{nil, {"a"}, {"a", "b c"}, {"a;b", "c"}, {" a"}, {"[x"}, {""}, {"é\n"}} {
		back, err := SplitTags(JoinTags(tags))
		require.NoError(t, err)
		assert.Equal(t, tags, back, "%q", JoinTags(tags))
	}
	assert.Equal(t, "a;b c", JoinTags([]string{"a", "b c"}))
	assert.Equal(t, `["a;b"]`, JoinTags([]string{"a;b"}))
}

func TestBase64Fields(t *testing.T) {
	_, rows, err := opened(t, "x.jsonl", `{"key_base64":"/wD+","payload_base64":"gIE=","embedding":[1]}`, Columns{})
	require.NoError(t, err)
	assert.Equal(t, []Row{{Key: "\xff\x00\xfe", HasKey: true, Payload: []byte{0x80, 0x81}}}, rows)
	for _, line := range []string{
		`{"key_base64":"/wD+","key":"a","embedding":[1]}`, `{"payload_base64":"gIE=","payload":"a","embedding":[1]}`,
		`{"key_base64":"%%","embedding":[1]}`,
	} {
		_, _, err := opened(t, "x.jsonl", line, Columns{})
		require.Error(t, err, line)
	}
}

func TestTableColumns(t *testing.T) {
	table, err := OpenTable(written(t, "x.csv", []byte("w,from,to\n1,a,\"b,c\"\n2,d\n")), &TableOptions{Columns: []string{"to", "from"}})
	require.NoError(t, err)
	fields, line, err := table.Next()
	require.NoError(t, err)
	assert.Equal(t, []string{"b,c", "a"}, fields)
	assert.Equal(t, 2, line)
	_, _, err = table.Next()
	require.ErrorContains(t, err, "line 3: byte 20: 2 fields, want at least 3")
	require.NoError(t, table.Close())

	_, err = OpenTable(written(t, "x.tsv", []byte("a\tb\n")), &TableOptions{Columns: []string{"c"}})
	require.ErrorContains(t, err, `no column is named "c"`)
	_, err = OpenTable(written(t, "x.tsv", nil), &TableOptions{Columns: []string{"c"}})
	require.ErrorContains(t, err, "has no header")
}

func TestNamedInput(t *testing.T) {
	path := written(t, "spooled", []byte("a,1,2\n"))
	r, err := OpenRows(path, &RowOptions{Format: "csv", Name: "standard input"})
	require.NoError(t, err)
	dst := make([]float32, 2)
	_, err = r.Next(dst)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, err = OpenRows(path, &RowOptions{Format: "npy", Name: "standard input"})
	require.ErrorContains(t, err, "standard input: not a format of embeddings")

	stream, err := OpenStream(written(t, "x.parquet.zst", zst(t, []byte("inside"))))
	require.NoError(t, err)
	content := new(bytes.Buffer)
	_, err = content.ReadFrom(stream)
	require.NoError(t, err)
	assert.Equal(t, "inside", content.String())
	require.NoError(t, stream.Close())
}
