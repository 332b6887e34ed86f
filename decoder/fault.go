package decoder

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// faults collects what is wrong with a spec or its tensors, in the order it was found.
type faults []error

func (f *faults) add(format string, args ...any) { *f = append(*f, fmt.Errorf(format, args...)) }

// shownFaults bounds the length of a message.
const shownFaults = 12

// err returns nil if there are no faults and otherwise one error of one line that lists them after subject.
func (f faults) err(subject string) error {
	switch len(f) {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s: %w", subject, f[0])
	}
	return &faultsError{subject: subject, faults: f}
}

// faultsError is errors.Join on one line.
type faultsError struct {
	subject string
	faults  faults
}

func (e *faultsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d faults", e.subject, len(e.faults))
	for i, err := range e.faults {
		if i == shownFaults {
			fmt.Fprintf(&b, "; and %d more", len(e.faults)-i)
			break
		}
		fmt.Fprintf(&b, "; (%d) %v", i+1, err)
	}
	return b.String()
}

func (e *faultsError) Unwrap() []error { return e.faults }

// key checks a field that names a tensor and is needed in one case and out of place in all others.
func (f *faults) key(field, key string, needed bool, where string) {
	switch {
	case needed && key == "":
		f.add("%s is missing; want the key of a tensor", field)
	case !needed && key != "":
		f.add("%s %q is out of place: it belongs to %s", field, key, where)
	}
}

// word checks a field that holds one of a few words or nothing.
func (f *faults) word(field, got string, want ...string) {
	if got != "" && !slices.Contains(want, got) {
		f.add("%s is %q; want one of %s", field, got, list(want...))
	}
}

func (f *faults) layer(at string, l *LayerSpec, last bool) {
	f.key(at+".weight", l.Weight, true, "")
	f.word(at+".residual", l.Residual, ResidualInput, ResidualZ)
	f.word(at+".norm_position", l.NormPosition, BeforeActivation, AfterActivation)
	f.norm(at+".norm", l.Norm)
	switch l.Activation {
	case Identity, ReLU, LeakyReLU, GELU, GELUTanh, SiLU, Tanh, Sigmoid:
	case "":
		if !last {
			f.add("%s.activation is missing; a state dict does not record it (%s for none)", at, Identity)
		}
	default:
		f.add("%s.activation is %q; want one of %s", at, l.Activation,
			list(ReLU, LeakyReLU, GELU, GELUTanh, SiLU, Tanh, Sigmoid, Identity))
	}
	if l.Slope != nil && (l.Activation != LeakyReLU || !isFinite(*l.Slope)) {
		f.add("%s.slope %v: want a finite number, with activation %s only", at, *l.Slope, LeakyReLU)
	}
}

func (f *faults) norm(at string, n *NormSpec) {
	if n == nil {
		return
	}
	if n.Kind != LayerNorm && n.Kind != BatchNorm {
		f.add("%s.kind is %q; want %s or %s", at, n.Kind, LayerNorm, BatchNorm)
		return
	}
	f.key(at+".mean", n.Mean, n.Kind == BatchNorm, BatchNorm)
	f.key(at+".var", n.Var, n.Kind == BatchNorm, BatchNorm)
	if n.Eps == nil {
		return
	}
	// A batch norm may do without eps; a layer norm of a row of equal values may not.
	if e := *n.Eps; !isFinite(e) || e < 0 || (e == 0 && n.Kind == LayerNorm) {
		f.add("%s.eps is %v; want a positive number, such as 1e-5", at, e)
	}
}

// specFields, layerFields and normFields are the fields JSON objects of a spec may have, beside those that are ignored.
var (
	specFields  = []string{"kind", "dim", "weight", "relation", "input_norm", "layers", "output", "output_column", "shapes"}
	layerFields = []string{"weight", "bias", "residual", "norm", "norm_position", "activation", "slope"}
	normFields  = []string{"kind", "weight", "bias", "mean", "var", "eps"}
	noMeaning   = []string{"dropout", "comment"}
)

// unknownFields adds a fault for every field of the JSON tree that the spec does not have.
func (f *faults) unknownFields(tree any) {
	top := f.object("", tree, specFields)
	f.object("input_norm.", top["input_norm"], normFields)
	layers, _ := top["layers"].([]any)
	for i, l := range layers {
		at := fmt.Sprintf("layers[%d].", i)
		fields := f.object(at, l, layerFields)
		f.object(at+"norm.", fields["norm"], normFields)
	}
}

// object adds a fault for every field of one JSON object that is neither known nor ignored. The types of values have
// been checked by unmarshalling into a Spec.
func (f *faults) object(at string, value any, known []string) map[string]any {
	fields, _ := value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) && !slices.Contains(noMeaning, name) {
			f.add("unknown field %q; want one of %s", at+name, list(known...))
		}
	}
	return fields
}

// jsonFault words an error of encoding/json for a reader who knows the spec and not its Go type.
func jsonFault(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		field := wrong.Field
		if field == "" {
			field = "the document"
		}
		return fmt.Errorf("%s is a JSON %s; want %s (byte %d)", field, wrong.Value, jsonName(wrong.Type.String()), wrong.Offset)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("no valid JSON: %w (byte %d)", err, syntax.Offset)
	}
	return err
}

// jsonName gives the JSON word for a Go type of a Spec's field.
func jsonName(goType string) string {
	switch {
	case goType == "int":
		return "a whole number"
	case strings.HasPrefix(goType, "float"):
		return "a number"
	case strings.HasPrefix(goType, "[]"):
		return "an array"
	case strings.HasSuffix(goType, "Spec"):
		return "an object"
	}
	return "a string"
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// list joins words with commas.
func list[S ~string](words ...S) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = string(w)
	}
	return strings.Join(quoted, ", ")
}
