package flashdb

import (
	"math/rand/v2"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/storage"
)

// A decoder with relations has one calibration for all of them. Its sources are pairs of a node and
// a relation, in either direction. Such a decoder is linear: bound to a source and a relation it is
// one query, and scores are inner products with it. So it is calibrated as a dot decoder whose
// sources are these queries.
//
// The bound is one of the mean recall over the relations as they are drawn. A plan may have a lower
// recall for one of them. So each plan names the relation with its lowest recall, and a plan that
// does better there is preferred if it costs little more (see calibrate.Frontier.Choose).

// measured returns the decoder to calibrate with: see above.
func (t *trained) measured() decoder.Decoder {
	if len(t.Spec().Relations) == 0 {
		return t.Decoder
	}
	d, err := decoder.NewDot(t.Dim())
	if err != nil {
		panic("flashdb: a dot decoder of a width that there is: " + err.Error())
	}
	return d
}

// A relationDraw draws the relation for each source of a calibration. For every other source it
// draws one that the source has links of, in proportion to their number: queries are likely to be
// of that kind. For the others it draws evenly from all relations, so that a rare one counts as
// much as a frequent one.
type relationDraw struct {
	names []string // none: the decoder has no relations
	known map[string]bool
	rng   *rand.Rand
	drawn int
}

func newRelationDraw(t *trained, seed uint64) *relationDraw {
	d := &relationDraw{names: t.Spec().Relations, known: map[string]bool{}, rng: rand.New(rand.NewPCG(seed, 0x4e1a7e))}
	for _, name := range d.names {
		d.known[name] = true
	}
	return d
}

// askedRelation is a relation in one direction. The empty name means none.
type askedRelation struct {
	relation string
	reverse  bool
}

// draw returns the relation for a source that has these links.
func (d *relationDraw) draw(related []storage.Related) askedRelation {
	if len(d.names) == 0 {
		return askedRelation{}
	}
	d.drawn++
	var links uint64
	for _, r := range related {
		if d.known[r.Relation] {
			links += r.IDs.GetCardinality()
		}
	}
	if links == 0 || d.drawn%2 == 0 {
		return askedRelation{d.names[d.rng.IntN(len(d.names))], d.rng.IntN(2) == 0}
	}
	at := d.rng.Uint64N(links)
	for _, r := range related {
		if !d.known[r.Relation] {
			continue
		}
		if n := r.IDs.GetCardinality(); at >= n {
			at -= n
			continue
		}
		return askedRelation{r.Relation, r.Reverse}
	}
	return askedRelation{}
}

// apply turns the row of a source into the query that the decoder makes of it.
func (a askedRelation) apply(t *trained, row []float32) error {
	if a.relation == "" {
		return nil
	}
	d, err := t.of(a.relation, a.reverse)
	if err == nil {
		d.Bind(nil, row).Ones(row)
	}
	return err
}
