package main

import (
	"fmt"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/internal/codec"
)

// mostAttributes is how many attributes a collection may have.
const mostAttributes = 256

// readKeys reads what the --keys file has of all nodes, and returns their keys. It refuses what
// could not be stored after the training.
func (t *trainRun) readKeys() (keys []string, err error) {
	im, file := &t.r.nodes, tableAt(t.r.keysFile)
	im.keysFile, im.notes = &file, &t.notes
	if im.columns.Attributes, err = im.types.ask(im.attrFlags); err != nil {
		return nil, err
	}
	im.keyColumns = im.columns
	if err := im.loadKeys(); err != nil {
		return nil, err
	}
	if len(im.keys.names) == 0 {
		return nil, fmt.Errorf("%s holds no keys", show.Text(t.r.keysFile))
	}
	for i, n := range im.keys.names {
		if n.row != int64(i) {
			return nil, fmt.Errorf("%s: no key is for row %d: want one for every row, from 0 on", show.Text(t.r.keysFile), i)
		}
		if _, err := t.node(i); err != nil {
			return nil, err
		}
		keys = append(keys, n.key)
	}
	if said := im.types.settle(); said != "" {
		fmt.Fprintf(im.notes, "%s: %s\n", im.keysFile.name, said)
	}
	t.named = true
	return keys, t.checkNodes()
}

// node is what the --keys file has of a node, by its number. Until the types of the attributes are
// settled, those of unknown type are left out.
func (t *trainRun) node(i int) (flashdb.Node, error) {
	n, err := t.r.nodes.node(int64(i), codec.Row{}, nil)
	if err != nil {
		return n, t.ofRow(i, err)
	}
	return n, nil
}

func (t *trainRun) ofRow(i int, err error) error {
	return fmt.Errorf("%s: row %d: %w", show.Text(t.r.keysFile), i, err)
}

// checkNodes refuses nodes that cannot be stored, and counts their bytes.
func (t *trainRun) checkNodes() error {
	schema, names := flashdb.Schema{Dim: 1}, map[string]bool{}
	for name := range t.r.kinds {
		names[name] = true
	}
	for i := range t.r.nodes.keys.names {
		n, err := t.node(i)
		if err != nil {
			return err
		}
		n.Embedding = []float32{0}
		if err := schema.ValidateNodes(n); err != nil {
			return t.ofRow(i, err)
		}
		t.namedBytes += len(n.Payload)
		for _, tag := range n.Tags {
			t.namedBytes += len(tag)
		}
		for name, x := range n.Attributes {
			names[name] = true
			t.namedBytes += attributeBytes(name, x)
		}
	}
	if len(names) > mostAttributes {
		return fmt.Errorf("%s: %d attributes, and a collection may have %d: name the columns with --attributes", show.Text(t.r.keysFile), len(names), mostAttributes)
	}
	return nil
}

// attributeBytes is what an attribute of a node takes in a batch, as flashdb.MaxBatchBytes counts.
func attributeBytes(name string, x any) int {
	text, _ := x.(string)
	return len(name) + 12 + len(text)
}
