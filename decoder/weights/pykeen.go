package weights

import (
	"fmt"

	"github.com/flashdb/flashdb/decoder"
)

// PyKEEN's models of knowledge graphs keep a table of entities, which are the embeddings of a
// collection, and one of relations. DistMult and ComplEx have the same keys. ComplEx has the parts
// of a complex number side by side. With create_inverse_triples every relation is followed by its
// inverse, whose name ends in _inverse; the file does not hold the names.

const (
	pykeenRelations = "relation_representations.0._embeddings.weight"
	pykeenEntities  = "entity_representations.0._embeddings.weight"
	pykeenInverse   = "_inverse"
)

func isPyKEEN(w dict) bool { return w.has(pykeenRelations) }

func pykeenSpec(w dict, o *Options) (*decoder.Spec, error) {
	t := w.tensors[pykeenRelations]
	switch {
	case o.Kind != decoder.DistMult && o.Kind != decoder.ComplEx:
		return nil, fmt.Errorf("key %s is of a PyKEEN model, of which no key says the kind: name it, %s or %s", w.key(pykeenRelations), decoder.DistMult, decoder.ComplEx)
	case len(t.Shape) != 2:
		return nil, fmt.Errorf("%s has shape %v; want relations x dim", w.key(pykeenRelations), t.Shape)
	case len(o.Relations) == 0:
		return nil, fmt.Errorf("the names of the %d relations are missing: give them, in the order of %s", t.Shape[0], w.key(pykeenRelations))
	}
	names := o.Relations
	if t.Shape[0] == 2*len(names) {
		names = nil
		for _, name := range o.Relations {
			names = append(names, name, name+pykeenInverse)
		}
	}
	spec := &decoder.Spec{Kind: o.Kind, Dim: t.Shape[1], Relation: pykeenRelations, Relations: names}
	if o.Kind == decoder.ComplEx {
		spec.Complex = decoder.ComplexPairs
	}
	if e, ok := w.tensors[pykeenEntities]; ok && (len(e.Shape) != 2 || e.Shape[1] != spec.Dim) {
		return nil, fmt.Errorf("%s has shape %v and %s %v; a decoder needs both of one width", w.key(pykeenEntities), e.Shape, w.key(pykeenRelations), t.Shape)
	}
	return spec, nil
}
