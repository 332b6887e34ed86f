package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// What is known of the paper's figures. The numbers of its table 2 are Hits@20 of ogbl-ddi, decoder
// HadamardMLP.
var paperTable2 = map[string]map[train.EncoderKind]float64{
	ddiGraph: {train.GCN: .371, train.SAGE: .539, train.Node2Vec: .233},
}

// The first column of the paper's ablation goes from the one to the other.
const (
	paperAblationFrom = .587
	paperAblationTo   = .676
)

// number3 writes a share as the paper does.
func number3(v float64) string { return fmt.Sprintf("%.3f", v) }

// spread3 writes a mean, and the standard deviation where there is one. It is empty where there is
// no value.
func spread3(values []float64) string {
	if len(values) == 0 {
		return ""
	}
	if len(values) < 2 {
		return number3(mean(values))
	}
	return fmt.Sprintf("%.3f ± %.3f", mean(values), deviation(values))
}

func (p *paperPage) tableOne(string) error {
	p.heading("Graphs (table 1)")
	t := table{header: []string{"graph", "nodes", "training edges", "validation", "test", "negatives", "edges are", "split", "in place of", "models"}}
	for _, name := range p.settings.all() {
		g := p.graphs[name]
		kind := "undirected"
		switch {
		case g.Sources > 0:
			kind = fmt.Sprintf("from %s sources", grouped(int64(g.Sources)))
		case g.Directed:
			kind = "directed"
		}
		stands := paperStandIns[name]
		if g.Official {
			stands = "itself"
		}
		negatives := grouped(int64(g.Negatives))
		if g.Negatives == 0 {
			negatives = grouped(int64(g.Lists)) + " of each link"
		}
		t.add(name, grouped(int64(g.Nodes)), grouped(int64(g.Edges)), grouped(int64(g.Valid)), grouped(int64(g.Test)), negatives, kind, g.Split, stands, p.modelsOf(name))
	}
	p.table(t)
	p.say(`The paper has four data sets of OGB: ogbl-ddi, ogbl-collab, ogbl-ppa and ogbl-citation2. A folder of
one of them, as OGB lays it out, is used where DATA holds it. Otherwise other graphs stand in, as the
last column says. They have the negatives that ogbl-collab and ogbl-citation2 have: one list of %s
for all test links, for Hits@k, and %s for each link, for the MRR. Both are drawn at random among the
nodes that the source has no edge to.`, grouped(sharedNegatives), grouped(ownNegatives))
	return nil
}

// modelsOf says whether a graph's models are trained by this run or given.
func (p *paperPage) modelsOf(graph string) string {
	switch encoders := p.settings.encodersOf(graph); {
	case encoders[0] == given:
		return "given"
	case encoders[len(encoders)-1] == given:
		return "trained here, and given"
	default:
		return "trained here"
	}
}

// metricsOf lists the metrics of a graph, the official one first.
func (p *paperPage) metricsOf(graph string) []string {
	first := p.indexed[modelKey(graph, p.settings.encodersOf(graph)[0], decoder.HadamardMLP, 1)].Metrics
	var names []string
	for name := range first {
		names = append(names, name)
	}
	official := hitsName(p.graphs[graph].HitsAt)
	slices.SortFunc(names, func(a, b string) int {
		if (a == official) != (b == official) {
			if a == official {
				return -1
			}
			return 1
		}
		return strings.Compare(fmt.Sprintf("%08s", a), fmt.Sprintf("%08s", b))
	})
	return names
}

// values returns a metric of a cell of table 2, by seed: nothing where there is no such model.
func (p *paperPage) values(graph string, encoder train.EncoderKind, d decoder.Kind, metric string, indexed bool) (values []float64) {
	for seed := 1; seed <= p.settings.seedsOf(encoder); seed++ {
		key := modelKey(graph, encoder, d, seed)
		metrics := p.trained[key].Metrics
		if indexed {
			metrics = p.indexed[key].Metrics
		}
		if v, ok := metrics[metric]; ok {
			values = append(values, v)
		}
	}
	return values
}

func (p *paperPage) tableTwo(string) error {
	p.heading("Decoders (table 2)")
	t := table{header: []string{"graph, encoder", "metric", "Dot", "Bilinear", "ConcatMLP", "HadamardMLP", "the same with Flashlight", "the paper's HadamardMLP"}}
	rows, equal := 0, 0
	var below []string // where Dot is not below the HadamardMLP
	worst, worstAt := 0.0, ""
	for _, graph := range p.settings.all() {
		for _, metric := range p.metricsOf(graph) {
			for _, encoder := range p.settings.encodersOf(graph) {
				row := paperServing{graph, encoder}.String()
				cells := []string{row, metricName(metric)}
				for _, d := range paperDecoders {
					cells = append(cells, spread3(p.values(graph, encoder, d, metric, false)))
				}
				mlp, indexed := p.values(graph, encoder, decoder.HadamardMLP, metric, false), p.values(graph, encoder, decoder.HadamardMLP, metric, true)
				cells = append(cells, spread3(indexed), p.paperCell(graph, encoder, metric))
				t.add(cells...)
				rows++
				if mean(mlp) <= mean(p.values(graph, encoder, decoder.Dot, metric, false)) {
					below = append(below, fmt.Sprintf("%s, %s", row, metricName(metric)))
				}
				if number3(mean(mlp)) == number3(mean(indexed)) {
					equal++
				}
				for i := range mlp {
					if d := math.Abs(mlp[i] - indexed[i]); d > worst {
						worst, worstAt = d, fmt.Sprintf("%s, %s", row, metricName(metric))
					}
				}
			}
		}
	}
	p.table(t)
	p.say("Each figure is %s%s, of the epoch with the best validation: by the official Hits@k on a data set of OGB, by the MRR among 100 negatives on another.", p.seeds(), p.single())
	if len(p.settings.Given) > 0 {
		p.say("A row of a given model has one decoder beside the inner product, the one in the folder. Its other cells are empty: no Bilinear and no ConcatMLP was trained on those embeddings. They were trained with the HadamardMLP, so that their inner product is weaker than one that is trained itself.")
	}
	p.say(`The column "with Flashlight" is measured, not copied: every score comes from an index. For Hits@k each
source is asked once, in %d rounds, for half of the candidates or fewer (%s), without
those it is known to be linked to; a pair that is not retrieved scores below all others. For the MRR each test link is ranked among its
own %s negatives, of which %d rounds of %d retrieve a half.`,
		deepRounds, p.askedRows(), grouped(ownNegatives), tableOwn.rounds, tableOwn.perRound)
	if worst < .0005 {
		p.say("The two columns are equal to three digits in every row, as in the paper.")
	} else {
		p.say("In the paper the two columns are equal. Here they are in %d of %d rows, to three digits. They differ most, by %.4f for one seed, on %s, because there the index did not retrieve every pair that counts.", equal, rows, worst, worstAt)
	}
	p.say("The paper finds the HadamardMLP more effective than the inner product. Here it is above Dot in %d of %d rows.%s", rows-len(below), rows, exceptions(below))
	p.trainings()
	return p.differences()
}

// askedRows says how many rows the queries for Hits@k ask for.
func (p *paperPage) askedRows() string {
	var parts []string
	for _, graph := range p.settings.all() {
		if r := p.indexed[modelKey(graph, p.settings.encodersOf(graph)[0], decoder.HadamardMLP, 1)]; r.Asked > 0 {
			parts = append(parts, fmt.Sprintf("%s of %s: %s", grouped(int64(r.Asked)), graph, grouped(int64(p.graphs[graph].Nodes-p.graphs[graph].Sources))))
		}
	}
	return strings.Join(parts, ", ")
}

// metricName is how the page writes a metric.
func metricName(metric string) string {
	if metric == mrrName {
		return "MRR"
	}
	return strings.ToUpper(metric[:1]) + metric[1:]
}

// exceptions lists the rows that do not fit a sentence.
func exceptions(rows []string) string {
	if len(rows) == 0 {
		return ""
	}
	return " The exceptions are " + strings.Join(rows, "; ") + "."
}

// seeds says how many models a cell has.
func (p *paperPage) seeds() string {
	if p.settings.Seeds == 1 {
		return "that of one seed, so that there is no standard deviation"
	}
	return fmt.Sprintf("the mean over %d seeds, with the standard deviation", p.settings.Seeds)
}

// single says which rows have one model whatever the run has, and which graphs one encoder.
func (p *paperPage) single() string {
	var notes []string
	if p.settings.Seeds > 1 && len(p.settings.Given) > 0 {
		notes = append(notes, "of a given model that of one")
	}
	for _, graph := range p.settings.Graphs {
		if p.settings.Training[graph].One && len(p.settings.Encoders) > 1 {
			notes = append(notes, graph+" is large and has one encoder")
		}
	}
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, "; ") + ")"
}

// paperCell is the paper's own figure.
func (p *paperPage) paperCell(graph string, encoder train.EncoderKind, metric string) string {
	if v, ok := paperTable2[graph][encoder]; ok && metric == hitsName(p.graphs[graph].HitsAt) {
		return number3(v)
	}
	return ""
}

// trainings says how the models were trained.
func (p *paperPage) trainings() {
	t := table{header: []string{"graph", "width", "decoder's layers", "epochs", "links per step", "learning rate", "dropout", "walks per node"}}
	for _, graph := range p.settings.Graphs {
		s := p.settings.Training[graph]
		t.add(graph, fmt.Sprint(s.Dim), layers(s), fmt.Sprint(s.Epochs), grouped(int64(s.Batch)), fmt.Sprint(s.Rate), fmt.Sprint(s.Dropout), fmt.Sprint(s.Walks))
	}
	p.table(t)
	p.say("Encoders have two layers on top of learned node embeddings. Each link has one negative, and the loss is binary cross-entropy, as in OGB's examples.")
}

// layers names the widths of a HadamardMLP.
func layers(t paperTraining) string {
	names := []string{fmt.Sprint(t.Dim)}
	for _, width := range t.Hidden {
		names = append(names, fmt.Sprint(width))
	}
	return strings.Join(append(names, "1"), "-")
}

// differences says where figures differ from the paper's, and why they may.
func (p *paperPage) differences() error {
	if !slices.Contains(p.settings.Graphs, ddiGraph) {
		return nil
	}
	t := p.settings.Training[ddiGraph]
	var parts []string
	for _, encoder := range p.settings.Encoders {
		own := mean(p.values(ddiGraph, encoder, decoder.HadamardMLP, hitsName(20), false))
		parts = append(parts, fmt.Sprintf("%.3f for %s where the paper has %.3f", own, paperNames[string(encoder)], paperTable2[ddiGraph][encoder]))
	}
	why := "Seeds, learning rate schedule and the choice of the epoch differ."
	if p.settings.Quick {
		why = fmt.Sprintf("The quick run stops after %d epochs at a width of %d. OGB's example for this data set, examples/linkproppred/ddi/gnn.py, trains 200 epochs at a width of 256. [train.md](train.md#ogbl-ddi) has longer runs with its settings.", t.Epochs, t.Dim)
	}
	p.say("On ogbl-ddi Hits@20 is %s. %s", strings.Join(parts, ", "), why)
	if p.long == nil {
		return nil
	}
	l := p.long
	p.say("One model was trained for longer: GCN, decoder %s, %s links per step, a time budget of %s on this machine. It ended at epoch %d of %d: %s. Hits@20 is %.3f by the decoder and %.3f by what Flashlight retrieves; the paper has %.3f. Hits@50 and Hits@100 are %.3f and %.3f.",
		layers(l.Training), grouped(int64(l.Training.Batch)), l.budget(), l.Trained.Epochs, l.Training.Epochs, l.Trained.Stopped,
		l.Trained.Metrics[hitsName(20)], l.Indexed[hitsName(20)], paperTable2[ddiGraph][train.GCN], l.Trained.Metrics[hitsName(50)], l.Trained.Metrics[hitsName(100)])
	short := p.trained[modelKey(ddiGraph, train.GCN, decoder.HadamardMLP, 1)]
	if l.Trained.Metrics[hitsName(20)] >= short.Metrics[hitsName(20)] {
		return nil
	}
	p.say("That is less than the %.3f of the short training; of the validation it is %.3f, against %.3f. Hits@20 depends on the 20 best of %s negatives alone. OGB's example has a dropout of 0.5, this training %v. Which of these matters was not measured.",
		short.Metrics[hitsName(20)], l.Trained.Valid, short.Valid, grouped(int64(p.graphs[ddiGraph].Negatives)), l.Training.Dropout)
	return nil
}

// askedSources says how many sources the lines of recall@k have.
func (p *paperPage) askedSources() string {
	least, most := math.MaxInt, 0
	for _, c := range p.curves {
		least, most = min(least, c.Sources), max(most, c.Sources)
	}
	if least == most {
		return grouped(int64(most))
	}
	return grouped(int64(least)) + " to " + grouped(int64(most))
}

func (p *paperPage) recallAtK(img string) error {
	p.heading("Recall@k (figure)")
	p.say(`For each source, how much of its true best %d rows is among the first k rows that Flashlight retrieves,
in the order in which the executor retrieves them: %d rounds of %d. An oracle retrieves the best rows
first.`, paperK, curveRounds, curvePerRound)
	t := table{header: []string{"graph, line", "k = 50", "100", "200", "300", "500"}}
	for _, model := range p.settings.served() {
		c := p.curves[model]
		if err := plotCurve(filepath.Join(img, model.plot("recall")), model.String(), c); err != nil {
			return err
		}
		p.image(fmt.Sprintf("Recall@k, %v", model), model.plot("recall"))
		for _, line := range []string{printedLine, learnedLine} {
			cells := []string{fmt.Sprintf("%v, %s", model, line)}
			for _, k := range []int{50, 100, 200, 300, 500} {
				cells = append(cells, number3(c.Recall[line][slices.Index(c.K, k)]))
			}
			t.add(cells...)
		}
		random := []string{fmt.Sprintf("%v, %s", model, randomLine)}
		for _, k := range []int{50, 100, 200, 300, 500} {
			random = append(random, number3(float64(k)/float64(c.Nodes)))
		}
		t.add(random...)
	}
	p.table(t)
	p.say("Each line has %s sources; the paper has 1,000. This project does not know the numbers of its curves.", p.askedSources())
	return nil
}
