package decoder

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/internal/onnx"
)

// maxONNX bounds the size of an ONNX file, which is held whole; protocol buffers allow no larger one.
const maxONNX = 2 << 30

// readONNX makes the decoder that the graph of an ONNX file computes.
func readONNX(path string, o ReadOptions) (Decoder, error) {
	if o.Spec != nil || o.Layout != "" || o.Prefix != "" || o.Activation != "" || o.Residual != "" {
		return nil, errors.New("an ONNX graph says itself what it computes: give no spec, layout, prefix, activation or residual")
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, pathless(err)
	}
	if info.Size() > maxONNX || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%d bytes: want a regular file of at most %d", info.Size(), int64(maxONNX))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, pathless(err)
	}
	beside := besides{dir: filepath.Dir(path), left: map[string]int64{}}
	m, err := onnx.Parse(data, beside.read)
	if err != nil {
		return nil, fmt.Errorf("ONNX: %w", err)
	}
	d, err := fromONNX(m, o.Kind)
	if err != nil {
		return nil, fmt.Errorf("ONNX: %w", err)
	}
	return d, nil
}

// besides reads files that lie in the folder of an ONNX file or below it. Of each no more bytes are read, over all tensors, than it has:
// tensors that share values would multiply them.
type besides struct {
	dir  string
	left map[string]int64
}

func (b *besides) read(location string, offset, length int64) (data []byte, err error) {
	if !filepath.IsLocal(filepath.FromSlash(location)) {
		return nil, fmt.Errorf("its values are in %s, which is not below the folder of the model", quote(location))
	}
	f, err := os.Open(filepath.Join(b.dir, filepath.FromSlash(location)))
	if err != nil {
		return nil, fmt.Errorf("its values: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if _, known := b.left[location]; !known {
		b.left[location] = info.Size()
	}
	if offset > info.Size() || length > info.Size()-offset || length > b.left[location] || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("its values are bytes %d to %d of %s, which has %d", offset, offset+length, quote(location), info.Size())
	}
	b.left[location] -= length
	data = make([]byte, length)
	_, err = io.ReadFull(io.NewSectionReader(f, offset, length), data)
	return data, err
}

// fromONNX walks the graph, which is in the order of computation, and makes the spec of what it computes.
func fromONNX(m *onnx.Model, kind Kind) (Decoder, error) {
	g := &onnxGraph{values: map[string]onnxValue{}, tensors: map[string]Tensor{}, opset: m.Opset}
	for name, t := range m.Tensors {
		g.values[name] = onnxValue{tensor: t}
	}
	if err := g.inputs(m, kind); err != nil {
		return nil, err
	}
	for i := range m.Nodes {
		n := &m.Nodes[i]
		v, err := g.apply(n)
		if err == nil && (len(n.Outputs) == 0 || n.Outputs[0] == "") {
			err = errors.New("has no output")
		}
		if err != nil {
			return nil, fmt.Errorf("node %d (%s, output %s): %w", i, n.Op, quote(strings.Join(n.Outputs, ", ")), err)
		}
		g.values[n.Outputs[0]] = v
	}
	if len(m.Outputs) != 1 {
		return nil, fmt.Errorf("the graph has %d outputs (%s): want one, the score", len(m.Outputs), quoted(m.Outputs))
	}
	out, ok := g.values[m.Outputs[0]]
	if !ok {
		return nil, fmt.Errorf("no node computes the output %s", quote(m.Outputs[0]))
	}
	if err := g.finish(out.flow); err != nil {
		return nil, fmt.Errorf("output %s: %w", quote(m.Outputs[0]), err)
	}
	return New(g.spec, g.tensors)
}

// inputs finds the embeddings: two inputs, the source first, or one that is z.
func (g *onnxGraph) inputs(m *onnx.Model, kind Kind) error {
	var names []string
	for _, name := range m.Inputs {
		if m.Tensors[name] == nil {
			names = append(names, name)
		}
	}
	switch {
	case len(names) == 2 && names[0] != names[1]:
		for i, name := range names {
			g.values[name] = onnxValue{flow: &onnxFlow{stage: []onnxStage{stageSource, stageCandidate}[i]}}
		}
		return nil
	case len(names) != 1:
		return fmt.Errorf("the graph has the inputs %s: want two, the embeddings of source and candidate, or one with the kind named", quoted(names))
	case kind == "":
		return fmt.Errorf("the graph has the one input %s: name the kind, %s if it is the product of two embeddings or %s if it is one after the other",
			quote(names[0]), HadamardMLP, ConcatMLP)
	}
	g.spec.Kind = kind
	g.values[names[0]] = onnxValue{flow: g.start()}
	return nil
}

// onnxGraph is a spec while the nodes that make it are read. A graph that is no chain of layers is refused at the node that branches.
type onnxGraph struct {
	opset   int64
	values  map[string]onnxValue // by name
	spec    Spec
	tensors map[string]Tensor // by the keys of spec
	head    *onnxFlow         // the newest value that is not a function of one element
	inputOf []*onnxFlow       // what each layer is applied to
	width   int               // of head, 0 while nobody knows
}

// onnxValue is a constant or a function of the inputs.
type onnxValue struct {
	tensor *onnx.Tensor
	flow   *onnxFlow
}

// onnxStage is how far a layer is computed.
type onnxStage uint8

const (
	stageSource onnxStage = iota
	stageCandidate
	stageZ
	stageLinear
	stageNormed // before the activation
	stageAfter  // normed after it
)

// onnxFlow is a value on the chain: curve of every element of base, which is itself where curve is nil.
type onnxFlow struct {
	stage onnxStage
	base  *onnxFlow
	curve func(x float64) float64
}

// start makes z the head.
func (g *onnxGraph) start() *onnxFlow { return g.advance(stageZ) }

// advance makes a new head.
func (g *onnxGraph) advance(s onnxStage) *onnxFlow {
	g.head = &onnxFlow{stage: s}
	return g.head
}

// root is the value whose elements a flow is a function of.
func (f *onnxFlow) root() *onnxFlow {
	if f.base != nil {
		return f.base
	}
	return f
}

// then applies a function to every element.
func (f *onnxFlow) then(curve func(x float64) float64) *onnxFlow {
	inner := f.at
	return &onnxFlow{stage: f.stage, base: f.root(), curve: func(x float64) float64 { return curve(inner(x)) }}
}

// at is the flow as a function of an element of its root.
func (f *onnxFlow) at(x float64) float64 {
	if f.curve == nil {
		return x
	}
	return f.curve(x)
}

// layer is the layer being made, or nil.
func (g *onnxGraph) layer() *LayerSpec {
	if len(g.spec.Layers) == 0 {
		return nil
	}
	return &g.spec.Layers[len(g.spec.Layers)-1]
}

// onHead checks that a flow is the newest value or a function of its elements.
func (g *onnxGraph) onHead(f *onnxFlow) error {
	switch {
	case f == nil:
		return errors.New("wants a computed value and has a constant")
	case f.stage == stageSource || f.stage == stageCandidate:
		return errors.New("works on one embedding alone: only networks on the product or the concatenation of the two are served")
	case f.root() != g.head:
		return errors.New("branches: it uses an earlier value than the one before it, which only a residual of a layer's input or of z may")
	}
	return nil
}

// settle fixes the activation of the layer a flow ends, so that something may follow it.
func (g *onnxGraph) settle(f *onnxFlow) error {
	if f.curve == nil {
		return nil
	}
	l := g.layer()
	if l == nil {
		return errors.New("an activation of the product or concatenation itself is not served")
	}
	name, slope, err := recognise(f.curve)
	if err != nil {
		return err
	}
	if f.stage == stageAfter || (l.Activation != Identity && l.Activation != name) {
		return errors.New("two activations behind one layer")
	}
	l.Activation, l.Slope = name, slope
	return nil
}

// finish ends the network at its output.
func (g *onnxGraph) finish(f *onnxFlow) error {
	if err := g.onHead(f); err != nil {
		return err
	}
	name, _, err := recognise(f.at)
	if err != nil {
		return err
	}
	final := map[Activation]string{Identity: outputNone, Sigmoid: outputSigmoid, ReLU: outputReLU}[name]
	l := g.layer()
	if l == nil {
		return errors.New("no layer: nothing is computed from the embeddings")
	}
	if g.width != 1 {
		return fmt.Errorf("the last layer has %d outputs: want one, the logit", g.width)
	}
	if final != "" && l.Activation == Identity {
		g.spec.Output = final
		return nil
	}
	return g.settle(f)
}

// put keeps a constant as a tensor of the spec and returns its key.
func (g *onnxGraph) put(key string, shape []int, data []float32) string {
	g.tensors[key] = Tensor{Shape: slices.Clone(shape), Data: data}
	return key
}
