package weights

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/internal/fault"
	"github.com/flashdb/flashdb/internal/codec"
	"github.com/flashdb/flashdb/internal/onnx"
)

// maxONNX bounds the size of an ONNX file, which is held whole; protocol buffers allow no larger
// one.
const maxONNX = 2 << 30

// readONNX makes the decoder that the graph of an ONNX file computes.
func readONNX(path string, o Options) (decoder.Decoder, error) {
	if o.Spec != nil || o.Layout != "" || o.Prefix != "" || o.Activation != "" || o.Residual != "" {
		return nil, errors.New("an ONNX graph says itself what it computes: give no spec, layout, prefix, activation or residual")
	}
	data, err := codec.ReadSmall(path, maxONNX)
	if err != nil {
		return nil, pathless(err)
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, pathless(err)
	}
	defer root.Close() //nolint:errcheck // nothing is written
	beside := besides{root: root}
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

// besides reads files that lie in the folder of an ONNX file or below it, which no symbolic link
// leads out of. Of each no more bytes are read, over all tensors, than it has: tensors that share
// values, or name one file in many ways, would multiply them.
type besides struct {
	root  *os.Root
	files []*beside
}

// beside is a file that was read. Links, and letters of the other case, may give it many names.
type beside struct {
	info os.FileInfo
	left int64 // bytes that may still be read
}

func (b *besides) read(location string, offset, length int64) (data []byte, err error) {
	if !filepath.IsLocal(filepath.FromSlash(location)) {
		return nil, fmt.Errorf("its values are in %s, which is not below the folder of the model: save it with "+
			"its values in that folder, or within it (external_data=False)", fault.Quote(location))
	}
	name := filepath.Clean(filepath.FromSlash(location))
	info, err := b.root.Stat(name) // before it is opened: to open a pipe waits for its writer
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("not a regular file")
	}
	var f *os.File
	if err == nil {
		f, err = b.root.Open(name)
	}
	if err != nil {
		return nil, fmt.Errorf("its values are in %s, a file that must lie beside the model (copy it there, or export with "+
			"external_data=False): %w", fault.Quote(location), pathless(err))
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, pathless(err)
	}
	file := b.file(info)
	if offset > info.Size() || length > info.Size()-offset || length > file.left {
		return nil, fmt.Errorf("its values are bytes %d to %d of %s, which has %d", offset, offset+length, fault.Quote(location), info.Size())
	}
	file.left -= length
	data = make([]byte, length)
	_, err = io.ReadFull(io.NewSectionReader(f, offset, length), data)
	return data, err
}

// file returns what is known of a file.
func (b *besides) file(info os.FileInfo) *beside {
	for _, f := range b.files {
		if os.SameFile(f.info, info) {
			return f
		}
	}
	f := &beside{info: info, left: info.Size()}
	b.files = append(b.files, f)
	return f
}

// fromONNX walks the graph, which is in the order of computation, and makes the spec of what it
// computes.
func fromONNX(m *onnx.Model, kind decoder.Kind) (decoder.Decoder, error) {
	g := &onnxGraph{values: map[string]onnxValue{}, tensors: map[string]decoder.Tensor{}, opset: m.Opset}
	for name, t := range m.Tensors {
		g.values[name] = onnxValue{tensor: t}
	}
	if err := g.inputs(m, kind); err != nil {
		return nil, err
	}
	for i := range m.Nodes {
		n := &m.Nodes[i]
		values, err := g.apply(n)
		if err == nil && (len(n.Outputs) == 0 || n.Outputs[0] == "") {
			err = errors.New("has no output")
		}
		if err != nil {
			return nil, fmt.Errorf("node %d (%s): %w", i, labelOf(n), err)
		}
		for k, v := range values {
			g.values[n.Outputs[k]] = v
		}
	}
	if len(m.Outputs) != 1 {
		return nil, fmt.Errorf("the graph has %d outputs (%s): want one, the score", len(m.Outputs), fault.Quoted(m.Outputs))
	}
	out, ok := g.values[m.Outputs[0]]
	if !ok {
		return nil, fmt.Errorf("no node computes the output %s", fault.Quote(m.Outputs[0]))
	}
	if err := g.finish(out.flow); err != nil {
		return nil, fmt.Errorf("output %s: %w", fault.Quote(m.Outputs[0]), err)
	}
	if kind != "" && kind != g.spec.Kind {
		return nil, fmt.Errorf("the graph computes a %s itself: name no other kind (--kind)", g.spec.Kind)
	}
	return decoder.New(g.spec, g.tensors)
}

// labelOf tells which node it is: operator, and name or, where exporters give none, outputs.
func labelOf(n *onnx.Node) string {
	if n.Name != "" {
		return fmt.Sprintf("%s %s", n.Op, fault.Quote(n.Name))
	}
	return fmt.Sprintf("%s, output %s", n.Op, fault.Quote(strings.Join(n.Outputs, ", ")))
}

// onnxGraph is a spec while the nodes that make it are read. A graph that is no chain of layers is
// refused at the node that branches.
type onnxGraph struct {
	opset   int64
	values  map[string]onnxValue // by name
	spec    decoder.Spec
	tensors map[string]decoder.Tensor // by the keys of spec
	head    *onnxFlow                 // the newest value that is not a function of one element
	inputOf []*onnxFlow               // what each layer is applied to
	width   int                       // of head, 0 while nobody knows
	rank    int                       // dimensions of head: of all but the last, one is over the pairs and any others are 1
	picked  bool                      // one output of the last layer is taken: head has a width of 1 and its layer more
	newNorm *decoder.NormSpec         // whose output head is, while it may still get a weight and a bias
}

// onnxValue is one of: a constant, embeddings or node numbers that are not combined yet, the
// network's values, a part of a layer norm that is spelled out, or dimensions to reshape by.
type onnxValue struct {
	tensor *onnx.Tensor
	turned bool // tensor is a matrix to be transposed
	ends   *onnxEnds
	flow   *onnxFlow
	moment *onnxMoment
	sizes  *onnxSizes
}

// onnxStage is how far a layer is computed.
type onnxStage uint8

const (
	stageZ onnxStage = iota
	stageLinear
	stageNormed // before the activation
	stageAfter  // normed after it
)

// onnxFlow is a value on the chain: curve of every element of base, which is itself where curve is
// nil.
type onnxFlow struct {
	stage onnxStage
	base  *onnxFlow
	curve func(x float64) float64
	steps int // of curve
}

// maxSteps bounds the functions composed to one activation, of which each is called for every use
// of its value.
const maxSteps = 256

// begin makes z the head.
func (g *onnxGraph) begin(kind decoder.Kind, width, rank int) onnxValue {
	g.spec.Kind, g.width, g.rank = kind, width, rank
	return onnxValue{flow: g.advance(stageZ)}
}

// advance makes a new head.
func (g *onnxGraph) advance(s onnxStage) *onnxFlow {
	g.head, g.newNorm = &onnxFlow{stage: s}, nil
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
	return &onnxFlow{stage: f.stage, base: f.root(), steps: f.steps + 1, curve: func(x float64) float64 { return curve(inner(x)) }}
}

// at is the flow as a function of an element of its root.
func (f *onnxFlow) at(x float64) float64 {
	if f.curve == nil {
		return x
	}
	return f.curve(x)
}

// layer is the layer being made, or nil.
func (g *onnxGraph) layer() *decoder.LayerSpec {
	if len(g.spec.Layers) == 0 {
		return nil
	}
	return &g.spec.Layers[len(g.spec.Layers)-1]
}

// onHead checks that a flow is the newest value or a function of its elements.
func (g *onnxGraph) onHead(f *onnxFlow) error {
	switch {
	case f == nil:
		return errors.New("wants values of the network and has a constant, or embeddings that are not combined")
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
	if f.stage == stageAfter || (l.Activation != decoder.Identity && l.Activation != name) {
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
	if err != nil && g.rescale(f) {
		name, err, f = decoder.Identity, nil, g.head
	}
	if err != nil {
		return err
	}
	final := map[decoder.Activation]string{decoder.Identity: decoder.OutputNone, decoder.Sigmoid: decoder.OutputSigmoid, decoder.ReLU: decoder.OutputReLU}[name]
	l := g.layer()
	if l == nil {
		return errors.New("no layer: nothing is computed from the embeddings")
	}
	if g.width != 1 {
		return fmt.Errorf("the last layer has %d outputs: want one, the logit, or that one is taken of them", g.width)
	}
	if final != "" && l.Activation == decoder.Identity {
		g.spec.Output = final
		return nil
	}
	return g.settle(f)
}

// rescale takes a last step a x + b, as of a temperature, into the last layer. It returns false
// where f is no such step.
func (g *onnxGraph) rescale(f *onnxFlow) bool {
	l := g.layer()
	origin := f.at(0)
	factor := f.at(1) - origin
	if l == nil || f.stage != stageLinear || l.Residual != "" || !agrees(f.at, func(x float64) float64 { return factor*x + origin }) {
		return false
	}
	weight := g.tensors[l.Weight]
	bias := decoder.Tensor{Shape: weight.Shape[:1], Data: make([]float32, weight.Shape[0])}
	if l.Bias != "" {
		bias = g.tensors[l.Bias]
	}
	affine := func(t decoder.Tensor, origin float64) []float32 {
		out := make([]float32, len(t.Data))
		for i, v := range t.Data {
			out[i] = float32(factor*float64(v) + origin)
		}
		return out
	}
	g.put(l.Weight, weight.Shape, affine(weight, 0))
	l.Bias = g.put(biasKey(len(g.spec.Layers)-1), bias.Shape, affine(bias, origin))
	return true
}

// biasKey is the key of a layer's bias.
func biasKey(layer int) string { return fmt.Sprintf("layers.%d.bias", layer) }

// put keeps a constant as a tensor of the spec and returns its key.
func (g *onnxGraph) put(key string, shape []int, data []float32) string {
	g.tensors[key] = decoder.Tensor{Shape: slices.Clone(shape), Data: data}
	return key
}
