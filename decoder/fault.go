package decoder

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/decoder/internal/fault"
)

// faults are what is wrong with a spec or its tensors.
type faults struct{ fault.List }

// key checks a field that names a tensor and is needed in one case and out of place in all others.
func (f *faults) key(field, key string, needed bool, where string) {
	switch {
	case needed && key == "":
		f.Add("%s is missing; want the key of a tensor", field)
	case !needed && key != "":
		f.Add("%s %q is out of place: it belongs to %s", field, key, where)
	}
}

// layers checks the layers of one network.
func (f *faults) layers(at string, layers []LayerSpec) {
	if slices.ContainsFunc(layers, func(l LayerSpec) bool { return l.GLU }) &&
		slices.ContainsFunc(layers, func(l LayerSpec) bool { return l.Residual == ResidualZ }) {
		f.Add("%s: residual %s has no place in a network with a gated linear unit", at, ResidualZ)
	}
	for i := range layers {
		f.layer(fmt.Sprintf("%s[%d]", at, i), &layers[i], i == len(layers)-1)
	}
}

func (f *faults) layer(at string, l *LayerSpec, last bool) {
	f.key(at+".weight", l.Weight, true, "")
	f.Word(at+".residual", l.Residual, ResidualInput, ResidualZ)
	f.Word(at+".norm_position", l.NormPosition, BeforeActivation, AfterActivation)
	f.norm(at+".norm", l.Norm)
	switch l.Activation {
	case Identity, ReLU, LeakyReLU, GELU, GELUTanh, SiLU, Tanh, Sigmoid:
	case "":
		if !last {
			f.Add("%s.activation is missing; a state dict does not record it (%s for none)", at, Identity)
		}
	default:
		f.Add("%s.activation is %q; want one of %s", at, l.Activation,
			fault.Words(ReLU, LeakyReLU, GELU, GELUTanh, SiLU, Tanh, Sigmoid, Identity))
	}
	f.gated(at, l)
	if l.Slope != nil && (l.Activation != LeakyReLU || !isFinite(*l.Slope)) {
		f.Add("%s.slope %v: want a finite number, with activation %s only", at, *l.Slope, LeakyReLU)
	}
}

// gated checks a gated linear unit.
func (f *faults) gated(at string, l *LayerSpec) {
	switch {
	case !l.GLU:
	case !strings.HasPrefix(at, "mixture.source.") && !strings.HasPrefix(at, "mixture.gate.source["):
		f.Add("%s.glu is out of place: only layers of mixture.source and mixture.gate.source may be gated linear units", at)
	case l.Norm != nil || l.Residual != "":
		f.Add("%s: a gated linear unit has neither norm nor residual here", at)
	case l.Activation == "":
		f.Add("%s.activation is missing; want that of the first half, such as %s of GeGLU or %s of SwiGLU", at, GELU, SiLU)
	}
}

func (f *faults) norm(at string, n *NormSpec) {
	if n == nil {
		return
	}
	if n.Kind != LayerNorm && n.Kind != BatchNorm {
		f.Add("%s.kind is %q; want %s or %s", at, n.Kind, LayerNorm, BatchNorm)
		return
	}
	f.key(at+".mean", n.Mean, n.Kind == BatchNorm, BatchNorm)
	f.key(at+".var", n.Var, n.Kind == BatchNorm, BatchNorm)
	if n.Eps == nil {
		return
	}
	// A batch norm may do without eps; a layer norm of a row of equal values may not.
	if e := *n.Eps; !isFinite(e) || e < 0 || (e == 0 && n.Kind == LayerNorm) {
		f.Add("%s.eps is %v; want a positive number, such as 1e-5", at, e)
	}
}

// specFields, layerFields and normFields are the fields JSON objects of a spec may have, beside
// those that are ignored.
var (
	specFields  = []string{"kind", "dim", "weight", "relation", "relations", "complex", "imaginary", "conjugate", "input_norm", "layers", "output", "output_column", "shapes", "mixture"}
	layerFields = []string{"weight", "bias", "residual", "norm", "norm_position", "activation", "slope", "glu"}
	normFields  = []string{"kind", "weight", "bias", "mean", "var", "eps"}
	noMeaning   = []string{"dropout", "comment"}
)

// unknownFields adds a fault for every field of the JSON tree that the spec does not have.
func (f *faults) unknownFields(tree any) {
	top := f.object("", tree, specFields)
	f.object("input_norm.", top["input_norm"], normFields)
	f.unknownLayerFields("layers", top["layers"])
	f.unknownMixtureFields(top["mixture"])
}

// unknownLayerFields is unknownFields for the layers of one network.
func (f *faults) unknownLayerFields(at string, tree any) {
	layers, _ := tree.([]any)
	for i, l := range layers {
		at := fmt.Sprintf("%s[%d].", at, i)
		fields := f.object(at, l, layerFields)
		f.object(at+"norm.", fields["norm"], normFields)
	}
}

// object adds a fault for every field of one JSON object that is neither known nor ignored. The
// types of values have been checked by unmarshalling into a Spec.
func (f *faults) object(at string, value any, known []string) map[string]any {
	fields, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) && !slices.Contains(noMeaning, name) {
			f.Add("unknown field %q; want one of %s", at+name, fault.Words(known...))
		}
	}
	return fields
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
