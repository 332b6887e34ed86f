package onnx

import (
	"errors"
	"fmt"
	"strconv"
)

// Model is the graph of a file.
type Model struct {
	Opset   int64 // version of the standard operators
	Nodes   []Node
	Inputs  []Input // in order; older files list tensors among them, too
	Outputs []string
	Tensors map[string]*Tensor // initializers
}

// Input is what the graph is given.
type Input struct {
	Name  string
	Type  Type
	Shape []int // declared dimensions, -1 where a dimension is free; nil if none is declared
}

// Type is the type of an element.
type Type int64

// Floats tells whether the elements are real numbers; a type that is not declared is taken for one.
func (t Type) Floats() bool {
	return t == 0 || t == typeFloat || t == typeFloat16 || t == typeBFloat16 || t == typeDouble
}

// Integers tells whether the elements may number nodes.
func (t Type) Integers() bool { return t == typeInt32 || t == typeInt64 }

// Node is one operator. An optional input that is left out is "".
type Node struct {
	Name       string
	Op         string
	Domain     string // "" for the standard operators
	Inputs     []string
	Outputs    []string
	Attributes map[string]Attribute
}

// Attribute is what a node is set to; which field counts is the operator's to know.
type Attribute struct {
	Float  float32
	Int    int64
	Text   string
	Tensor *Tensor
	Floats []float32
	Ints   []int64
	Graph  bool // it is a graph, which is not read
}

// maxParts bounds the nodes, the tensors, and the inputs and outputs of a graph: hundreds of times
// what the deepest decoder has.
const maxParts = 1 << 16

// maxNames bounds the inputs and outputs of all nodes.
const maxNames = 8 * maxParts

// External reads length bytes at offset of the file that a tensor names as the place of its values;
// length is -1 for all from offset on.
type External func(location string, offset, length int64) ([]byte, error)

// Parse reads the content of a file. A nil external refuses tensors kept elsewhere.
func Parse(data []byte, external External) (*Model, error) {
	m := &Model{Tensors: map[string]*Tensor{}}
	p := parser{model: m, external: external}
	seen := false
	err := fields(data, func(f field) error {
		switch f.num {
		case 7:
			if seen {
				return errors.New("damaged: two graphs")
			}
			seen = true
			b, err := f.message()
			if err == nil {
				err = p.graph(b)
			}
			return err
		case 8:
			b, err := f.message()
			if err == nil {
				err = p.opset(b)
			}
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !seen {
		return nil, errors.New("not an ONNX model: no graph in it")
	}
	return m, nil
}

type parser struct {
	model    *Model
	external External
	tensors  int
	names    int // inputs and outputs of nodes
}

func (p *parser) opset(b []byte) error {
	var domain string
	var version int64
	err := fields(b, func(f field) error {
		switch f.num {
		case 1:
			return f.text(&domain)
		case 2:
			return f.integer(&version)
		}
		return nil
	})
	if domain == "" || domain == "ai.onnx" {
		p.model.Opset = version
	}
	return err
}

func (p *parser) graph(b []byte) error {
	m := p.model
	return fields(b, func(f field) error {
		part, err := f.message()
		if err != nil {
			return nil //nolint:nilerr // none of the scalar fields is read
		}
		switch f.num {
		case 1:
			if len(m.Nodes) == maxParts {
				return fmt.Errorf("more than %d nodes", maxParts)
			}
			n, err := p.node(part)
			m.Nodes = append(m.Nodes, n)
			return err
		case 5:
			t, err := p.tensor(part)
			if err != nil {
				return err
			}
			if m.Tensors[t.Name] != nil {
				return fmt.Errorf("initializer %s is there twice", quote(t.Name))
			}
			m.Tensors[t.Name] = t
		case 11, 12:
			if len(m.Inputs)+len(m.Outputs) >= maxParts {
				return fmt.Errorf("more than %d inputs and outputs", maxParts)
			}
			in, err := input(part)
			if f.num == 11 {
				m.Inputs = append(m.Inputs, in)
			} else {
				m.Outputs = append(m.Outputs, in.Name)
			}
			return err
		case 15:
			return errors.New("sparse initializers are not supported")
		}
		return nil
	})
}

func (p *parser) node(b []byte) (Node, error) {
	n := Node{Attributes: map[string]Attribute{}}
	err := fields(b, func(f field) error {
		var text string
		if f.num == 1 || f.num == 2 {
			if p.names++; p.names > maxNames {
				return fmt.Errorf("more than %d inputs and outputs of nodes", maxNames)
			}
		}
		switch f.num {
		case 1:
			err := f.text(&text)
			n.Inputs = append(n.Inputs, text)
			return err
		case 2:
			err := f.text(&text)
			n.Outputs = append(n.Outputs, text)
			return err
		case 3:
			return f.text(&n.Name)
		case 4:
			return f.text(&n.Op)
		case 5:
			part, err := f.message()
			if err != nil {
				return err
			}
			name, a, err := p.attribute(part)
			n.Attributes[name] = a
			return err
		case 7:
			return f.text(&n.Domain)
		}
		return nil
	})
	if n.Domain == "ai.onnx" {
		n.Domain = ""
	}
	return n, err
}

func (p *parser) attribute(b []byte) (name string, a Attribute, err error) {
	err = fields(b, func(f field) error {
		var err error
		switch f.num {
		case 1:
			return f.text(&name)
		case 2:
			var v []float32
			if v, err = f.floats(nil); err == nil && len(v) == 1 {
				a.Float = v[0]
			}
		case 3:
			return f.integer(&a.Int)
		case 4:
			return f.text(&a.Text)
		case 5:
			var part []byte
			if part, err = f.message(); err == nil {
				a.Tensor, err = p.tensor(part)
			}
		case 6, 11:
			a.Graph = true
		case 7:
			a.Floats, err = f.floats(a.Floats)
		case 8:
			a.Ints, err = f.integers(a.Ints)
		}
		return err
	})
	return name, a, err
}

// quote makes a name from a file fit for a message.
func quote(name string) string {
	const most = 80
	if len(name) > most {
		return strconv.Quote(name[:most]) + "..."
	}
	return strconv.Quote(name)
}
