package parquet

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/flashdb/flashdb/internal/codec"
)

// attributesGroup is the column whose leaves are attributes, as Writer writes them.
const attributesGroup = "attributes"

// An attribute is a column of attributes.
type attribute struct {
	*cursor
	attributeName string
}

// chooseAttributes finds the columns of attributes: those named, and those of the group.
func (r *Rows) chooseAttributes(named []string) error {
	f := r.file
	for _, name := range named {
		leaf, err := f.find(name, "a number, string, bool, date or timestamp", isAttribute)
		if err != nil {
			return err
		}
		r.attributes = append(r.attributes, attribute{newCursor(f, leaf), name})
	}
	for _, leaf := range f.leaves {
		path := leaf.Path()
		if len(path) == 2 && path[0] == attributesGroup && isAttribute(leaf) && !slices.Contains(named, path[1]) {
			r.attributes = append(r.attributes, attribute{newCursor(f, leaf), path[1]})
		}
	}
	return nil
}

func isAttribute(c *parquet.Column) bool {
	switch c.Type().Kind() {
	case parquet.Boolean, parquet.Int32, parquet.Int64, parquet.Float, parquet.Double, parquet.ByteArray:
		return c.MaxRepetitionLevel() == 0 && !isDecimal(c.Type())
	}
	return false
}

func isDecimal(t parquet.Type) bool {
	if l := t.LogicalType(); l != nil {
		_, ok := l.Value.(*format.DecimalType)
		return ok
	}
	return false
}

// readAttributes reads the attributes of the next row.
func (r *Rows) readAttributes() (all map[string]any, err error) {
	for _, a := range r.attributes {
		values, err := a.next(1)
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("column %s: ends before the others", strconv.Quote(a.name))
		}
		if err != nil {
			return nil, err
		}
		if values[0].null {
			continue
		}
		if all == nil {
			all = map[string]any{}
		}
		all[a.attributeName] = a.value(&values[0])
	}
	return all, nil
}

// value is a value of an attribute as codec.Row has it.
func (c *cursor) value(v *value) any {
	switch c.physical.kind {
	case parquet.Boolean:
		return v.whole != 0
	case parquet.Float, parquet.Double:
		return v.double
	case parquet.ByteArray:
		return string(v.bytes)
	}
	if l := c.leaf.Type().LogicalType(); l != nil {
		switch of := l.Value.(type) {
		case *format.DateType:
			return time.Unix(v.whole*24*3600, 0).UTC()
		case *format.TimestampType:
			switch of.Unit.Value.(type) {
			case *format.MilliSeconds:
				return time.UnixMilli(v.whole).UTC()
			case *format.MicroSeconds:
				return time.UnixMicro(v.whole).UTC()
			}
			return time.Unix(v.whole/1e9, v.whole%1e9).UTC()
		}
	}
	if c.unsigned && c.physical.size == 4 {
		return uint64(uint32(v.whole))
	}
	if c.unsigned {
		return uint64(v.whole)
	}
	return v.whole
}

// attributeNodes is the group of attributes of a schema.
func attributeNodes(all []codec.Attribute) parquet.Group {
	group := parquet.Group{}
	for _, a := range all {
		group[a.Name] = map[string]parquet.Node{
			"number": parquet.Optional(parquet.Leaf(parquet.DoubleType)),
			"string": parquet.Optional(parquet.String()),
			"bool":   parquet.Optional(parquet.Leaf(parquet.BooleanType)),
			"time":   parquet.Optional(parquet.Timestamp(parquet.Microsecond)),
		}[a.Type]
	}
	return group
}

// attributeValue is a value as parquet-go takes it.
func attributeValue(x any) parquet.Value {
	switch x := x.(type) {
	case float64:
		return parquet.DoubleValue(x)
	case string:
		return parquet.ByteArrayValue([]byte(x))
	case bool:
		return parquet.BooleanValue(x)
	case time.Time:
		return parquet.Int64Value(x.UnixMicro())
	}
	return parquet.NullValue()
}
