package main

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/codec"
)

// The reference graph of Go's standard library; demodata/README.md describes the files.
//
//go:embed demodata
var demoFiles embed.FS

func demoFile(name string) ([]byte, error) {
	return fs.ReadFile(demoFiles, path.Join("demodata", name))
}

func demoTable(name string) tableFile {
	return tableFile{name, "line", func() (tableReader, error) {
		b, err := demoFile(name)
		if err != nil {
			return nil, err
		}
		return codec.ParseTable(name, b)
	}}
}

// demoImporter imports the declarations, tagged by their kind and by the first element of their
// package's path.
func demoImporter() *importer {
	const name = "embeddings.npy.zst"
	keys := demoTable("nodes.tsv.zst")
	return &importer{
		name: name,
		open: func() (codec.RowReader, error) {
			b, err := demoFile(name)
			if err != nil {
				return nil, err
			}
			return codec.ParseRows(name, b)
		},
		keysFile: &keys,
		tagsOf: func(key string, kind []byte) []string {
			top, _, _ := strings.Cut(key, "/")
			top, _, _ = strings.Cut(top, ".")
			return []string{top, string(kind)}
		},
	}
}

func demoDecoder() (decoder.Decoder, error) {
	specJSON, err := demoFile("decoder.json")
	if err != nil {
		return nil, err
	}
	spec, err := decoder.ParseSpec(specJSON)
	if err != nil {
		return nil, err
	}
	weights, err := demoFile("decoder.safetensors")
	if err != nil {
		return nil, err
	}
	parsed, err := codec.ParseTensors("decoder.safetensors", weights)
	if err != nil {
		return nil, fmt.Errorf("read decoder: %w", err)
	}
	tensors := map[string]decoder.Tensor{}
	for key, t := range parsed {
		tensors[key] = decoder.Tensor(t)
	}
	return decoder.New(spec, tensors)
}
