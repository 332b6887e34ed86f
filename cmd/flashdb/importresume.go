package main

import (
	"context"
	"encoding/json"
)

// An import of many batches that ended before its last one, killed or without a network to its
// database, is gone on with by the same command: the collection's metadata say how far it got. It
// is written behind every batch, beside the next one, so that what the next run stores again is two
// batches at most.
const metaImport = reserved + "import"

// importState is the value of metaImport.
type importState struct {
	Source   string `json:"source"` // what is imported: file and flags
	Stored   int64  `json:"stored"` // rows, from the first selected one on
	WasEmpty bool   `json:"was_empty"`
	FirstKey []byte `json:"first_key"`
}

// source identifies an import. An importer without a file of its own (the demo) has none and is not
// gone on with.
func (im *importer) source() string {
	if im.file == nil || im.file.identity == "" {
		return ""
	}
	parts := []any{im.file.identity, im.file.format, im.columns, im.keysIdentity, im.tags, im.start, im.count}
	if columns := im.keyColumns; columns.Key+columns.Tags+columns.Payload != "" {
		parts = append(parts, columns)
	}
	if len(im.attrFlags) > 0 {
		parts = append(parts, im.attrFlags)
	}
	text, err := json.Marshal(parts)
	if err != nil {
		return ""
	}
	return string(text)
}

// resume sets what an earlier run of the same import left.
func (im *importer) resume(ctx context.Context, c collection) error {
	im.state = importState{Source: im.source()}
	if im.state.Source == "" {
		return nil
	}
	text, err := c.Meta(ctx, metaImport)
	if err != nil || text == "" {
		return err
	}
	var earlier importState
	if json.Unmarshal([]byte(text), &earlier) == nil && earlier.Source == im.state.Source {
		im.state = earlier
	}
	return nil
}

// write stores the state.
func (s importState) write(ctx context.Context, c collection) error {
	if s.Source == "" {
		return nil
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return c.SetMeta(ctx, metaImport, string(text))
}

// finished forgets it again.
func (im *importer) finished(ctx context.Context, c collection) error {
	text, err := c.Meta(ctx, metaImport)
	if err != nil || text == "" {
		return err
	}
	return c.SetMeta(ctx, metaImport, "")
}
