package decoder

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/flashdb/flashdb/internal/nearest"
)

// MaxRelations is the largest number of relations that a decoder may have.
const MaxRelations = 1 << 16

// maxRelationName is the largest number of bytes of a relation's name.
const maxRelationName = 1024

// ForRelation returns the decoder of one relation of d, of a row of its table. It can be bound,
// which d itself cannot: Bind of a decoder that has relations panics.
//
// Reverse asks the other way round: with the tail of a triple as the source it scores candidates
// for the head. Score(y, x) in reverse is Score(x, y).
//
// Of a decoder without relations the empty name returns d. The error says which relations there
// are, or which are like the one that is not known. The decoder returned is the same for the same
// arguments, and shares its weights with d.
func ForRelation(d Decoder, name string, reverse bool) (Decoder, error) {
	t, ok := d.(*relationTable)
	switch {
	case !ok && name == "" && !reverse:
		return d, nil
	case !ok:
		return nil, fmt.Errorf("relation %q: this %s decoder has no relations: leave the relation out", name, d.Kind())
	case name == "":
		return nil, fmt.Errorf("it has %d relations and none was named: name one, such as %s", len(t.spec.Relations), quotedFew(t.spec.Relations))
	}
	row, ok := t.rows[name]
	if !ok {
		return nil, fmt.Errorf("relation %q is not known: %s", name, suggested(name, t.spec.Relations))
	}
	if reverse {
		row += len(t.spec.Relations)
	}
	return &t.of[row], nil
}

// shownRelations bounds the length of a message that lists relations.
const shownRelations = 5

// suggested says which of the names may have been meant.
func suggested(name string, names []string) string {
	if near := nearest.Among(name, names, 3); len(near) > 0 && len(names) > shownRelations {
		return "did you mean " + quotedFew(near) + "?"
	}
	return fmt.Sprintf("the decoder has %d, such as %s", len(names), quotedFew(names))
}

// quotedFew lists the first names.
func quotedFew(names []string) string {
	var quoted []string
	for _, name := range names[:min(len(names), shownRelations)] {
		quoted = append(quoted, fmt.Sprintf("%q", name))
	}
	return strings.Join(quoted, ", ")
}

// relationFaults checks the fields of a spec that are about relations.
func (s *Spec) relationFaults(f *faults) {
	related := s.Kind == DistMult || s.Kind == ComplEx
	f.key("relation", s.Relation, related, "kinds distmult and complex")
	if s.Kind != ComplEx {
		if s.Imaginary != "" || s.Complex != "" || s.Conjugate {
			f.Add("imaginary, complex and conjugate are out of place: they belong to kind %s", ComplEx)
		}
	} else if s.Dim%2 != 0 {
		f.Add("dim is %d; want an even number: half of the values are real parts, half imaginary ones", s.Dim)
	}
	f.Word("complex", s.Complex, ComplexHalves, ComplexPairs)
	switch {
	case len(s.Relations) > 0 && !related:
		f.Add("relations are out of place: they belong to kinds %s and %s", DistMult, ComplEx)
		return
	case len(s.Relations) > MaxRelations:
		f.Add("%d relations; want at most %d", len(s.Relations), MaxRelations)
		return
	}
	first := make(map[string]int, len(s.Relations))
	for i, name := range s.Relations {
		at, twice := first[name]
		switch {
		case twice:
			f.Add("relations[%d] is %q, as relations[%d] is; want different names", i, name, at)
		case name == "" || len(name) > maxRelationName || !utf8.ValidString(name):
			f.Add("relations[%d] has %d bytes; want a name of 1 to %d bytes of UTF-8", i, len(name), maxRelationName)
		}
		first[name] = i
	}
}

// relationShapes checks the tensors of a DistMult or ComplEx decoder.
func (c *fitter) relationShapes(s *Spec) {
	width, why := s.Dim, fmt.Sprintf("dim is %d", s.Dim)
	if s.Imaginary != "" {
		width, why = s.Dim/2, fmt.Sprintf("half of dim %d, as imaginary is a tensor of its own", s.Dim)
	}
	want := []int{width}
	if n := len(s.Relations); n > 0 {
		want, why = []int{n, width}, fmt.Sprintf("%d relations, %s", n, why)
	}
	c.shape("relation", s.Relation, why, want...)
	if s.Imaginary != "" {
		c.shape("imaginary", s.Imaginary, why, want...)
	}
}

// A relationTable is a DistMult or ComplEx decoder with a row of weights for each relation. It is
// never bound itself.
type relationTable struct {
	model
	rows map[string]int
	of   []rowDecoder // of each relation, and then of each in reverse
}

func newRelationTable(m model) *relationTable {
	n := len(m.spec.Relations)
	t := &relationTable{model: m, rows: make(map[string]int, n), of: make([]rowDecoder, 2*n)}
	for i, name := range m.spec.Relations {
		t.rows[name] = i
		t.of[i] = rowDecoder{t, i, false}
		t.of[n+i] = rowDecoder{t, i, true}
	}
	return t
}

func (t *relationTable) Bind(Bound, []float32) Bound {
	panic("decoder: a decoder of several relations cannot be bound: take one by ForRelation")
}

func (t *relationTable) String() string {
	if len(t.spec.Relations) == 1 {
		return t.model.String() + ", 1 relation"
	}
	return fmt.Sprintf("%s, %d relations", t.model.String(), len(t.spec.Relations))
}

// A rowDecoder is the decoder of one relation of a table.
type rowDecoder struct {
	table   *relationTable
	row     int
	reverse bool
}

func (d *rowDecoder) Kind() Kind     { return d.table.spec.Kind }
func (d *rowDecoder) Dim() int       { return d.table.spec.Dim }
func (d *rowDecoder) String() string { return d.table.model.String() }

// Spec describes the decoder of the one relation, which needs no name.
func (d *rowDecoder) Spec() Spec {
	s := d.table.spec
	s.Relations = nil
	s.Conjugate = s.Conjugate != (d.reverse && s.Kind == ComplEx)
	return s
}

func (d *rowDecoder) Tensors() map[string]Tensor {
	one := make(map[string]Tensor, len(d.table.tensors))
	for key, t := range d.table.tensors {
		row := d.table.rowOf(t.Data, d.row)
		one[key] = Tensor{Shape: []int{len(row)}, Data: row}
	}
	return one
}

// rowOf returns a row of one of the tensors, nil of none.
func (t *relationTable) rowOf(data []float32, row int) []float32 {
	width := len(data) / len(t.spec.Relations)
	return data[row*width : (row+1)*width]
}

func (d *rowDecoder) Bind(into Bound, source []float32) Bound {
	t := d.table
	t.checkSource(source)
	b := reuseLinear(into, t.spec.Dim)
	s := &t.spec
	relation := t.rowOf(t.tensors[s.Relation].Data, d.row)
	imaginary := t.rowOf(t.tensors[s.Imaginary].Data, d.row)
	s.relationQuery(b.exact, source, relation, imaginary, d.reverse)
	b.round()
	return b
}

// relationQuery writes the query of a source under one relation: the row whose inner product with a
// candidate is the score. Imaginary is empty where relation holds both parts.
//
// DistMult (Yang et al., ICLR 2015): q = x * r, in either direction. ComplEx (Trouillon et al.,
// ICML 2016, eq. 11): the score is the real part of <x, r, conj(y)>, so that q = x * r in complex
// numbers. In reverse it is that of <y, r, conj(x)>, and q = x * conj(r).
func (s *Spec) relationQuery(q []float64, source, relation, imaginary []float32, reverse bool) {
	if s.Kind == DistMult {
		for k, x := range source {
			q[k] = float64(x) * float64(relation[k])
		}
		return
	}
	sign := 1.0
	if s.Conjugate != reverse {
		sign = -1
	}
	half := s.Dim / 2
	for k := range half {
		re, im := s.parts(k)
		a, b := float64(source[re]), float64(source[im])
		var c, d float64
		if len(imaginary) > 0 {
			c, d = float64(relation[k]), sign*float64(imaginary[k])
		} else {
			c, d = float64(relation[re]), sign*float64(relation[im])
		}
		q[re] = a*c - b*d
		q[im] = a*d + b*c
	}
}

// parts returns where the parts of the k-th complex number of a row are.
func (s *Spec) parts(k int) (re, im int) {
	if s.Complex == ComplexPairs {
		return 2 * k, 2*k + 1
	}
	return k, s.Dim/2 + k
}
