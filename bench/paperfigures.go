package main

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/train"
)

func (p *paperPage) speed(string) error {
	p.heading("Speed at recall 1.00 (figure)")
	p.say("Sources per second on one thread, for the best %d: the fastest plan whose measured recall is at least %.3f. Where no plan reaches that, the best recall of any plan is in brackets. The rate is computed from the processor time of the median source, which other programs on the machine change little.", paperK, fullRecall)
	t := table{header: []string{"graph, encoder", "exact scan", "Flashlight, ones", "recall", "times", "learned seeds", "recall", "times"}}
	most := 0.0
	var where paperServing
	for _, graph := range p.settings.all() {
		for _, encoder := range p.settings.encodersOf(graph) {
			model := paperServing{graph, encoder}
			s := p.speeds[model]
			cells := []string{model.String(), significant(s.Exact)}
			for _, line := range []string{oursLine, learnedLine} {
				best, reached := s.best(line, fullRecall)
				if !reached {
					cells = append(cells, absent, fmt.Sprintf("(%.3f)", best.Recall), absent)
					continue
				}
				if best.Rate/s.Exact > most {
					most, where = best.Rate/s.Exact, model
				}
				cells = append(cells, significant(best.Rate), fmt.Sprintf("%.4f", best.Recall), significant(best.Rate/s.Exact))
			}
			t.add(cells...)
		}
	}
	for _, theirs := range []string{"SEAL", "SUREL"} {
		t.add(theirs+" (the paper's)", "", "", "", "", "", "", "")
	}
	p.table(t)
	p.say("SEAL and SUREL score a pair by its subgraph, and are not in this project. It does not know their speeds in the paper, so their cells are empty.")
	if most == 0 {
		p.say("No plan reaches this recall here, so that there is nothing to compare with the paper's \"more than 100 times\" on ogbl-citation2.")
		return nil
	}
	p.say(`The paper says "more than 100 times" on ogbl-citation2, with 2.9M nodes. Here the most is %s
times, on %v with %s candidates, on one thread of a processor. %s The exact scan grows with the number of
candidates faster than Flashlight does (see Complexity), so a smaller graph has a smaller ratio. %s`,
		significant(most), where, grouped(int64(p.speeds[where].Nodes)), overHundred(most), p.ofLargest(where))
	return nil
}

// overHundred compares a ratio with the paper's.
func overHundred(times float64) string {
	if times > 100 {
		return "That agrees with the paper, on another graph and model."
	}
	return "That is less than in the paper, on another graph and model."
}

// ofLargest says what the model of the most candidates has, where another one has the best ratio.
func (p *paperPage) ofLargest(but paperServing) string {
	model := p.largest()
	if model == but {
		return ""
	}
	s := p.speeds[model]
	text := fmt.Sprintf("On %v, with %s candidates, it is ", model, grouped(int64(s.Nodes)))
	for _, recall := range []float64{fullRecall, .99, .95} {
		most := 0.0
		for _, line := range []string{oursLine, learnedLine} {
			if best, reached := s.best(line, recall); reached {
				most = max(most, best.Rate/s.Exact)
			}
		}
		if most > 0 {
			return text + fmt.Sprintf("%s times, at a recall of %.3f.", significant(most), recall)
		}
	}
	return text + "not known: no plan has a recall of 0.95."
}

func (p *paperPage) tradeOff(img string) error {
	p.heading("Trade-off of recall and speed (figure)")
	p.say("The best of the plans that were timed, on one thread, of the %s models and those that are given. DotMax scores the rows of highest inner product with the source. Random rows show what any number of scored rows finds without retrieval.", paperNames[string(p.settings.Encoders[0])])
	t := table{header: []string{"graph, line", "recall of the fastest plan from .90 on", "sources per second", "rows scored", "from .99 on", "sources per second", "rows scored"}}
	for _, model := range p.settings.served() {
		s := p.speeds[model]
		if err := plotTradeOff(filepath.Join(img, model.plot("speed")), model.String(), s); err != nil {
			return err
		}
		p.image(fmt.Sprintf("Recall against speed, %v", model), model.plot("speed"))
		for _, line := range []string{oursLine, learnedLine, dotMaxLine, randomLine} {
			cells := []string{fmt.Sprintf("%v, %s", model, line)}
			for _, recall := range []float64{.9, .99} {
				best, reached := s.best(line, recall)
				if !reached {
					cells = append(cells, fmt.Sprintf("none (%.3f)", best.Recall), absent, absent)
					continue
				}
				cells = append(cells, number3(best.Recall), significant(best.Rate), grouped(int64(math.Round(best.Scored))))
			}
			t.add(cells...)
		}
	}
	p.table(t)
	p.say("Each point is %d sources. Where a line does not reach the recall of a column, its best recall is in brackets. This project does not know the numbers of the paper's curves.", p.speeds[p.settings.served()[0]].Sources)
	return nil
}

func (p *paperPage) ablation(string) error {
	p.heading("Rounds and rows per round (ablation)")
	p.say("Recall of the best %d for T rounds of N rows, by the algorithm as printed: one anchor, every list probed, no early stop (the plan's patience is its number of rounds; `flashdb predict --patience -1` does the same). T rounds are the first ones of the longest plan. The columns on the left begin with the paper's first query, the seed ones, those on the right with learned seeds.", paperK)
	for _, model := range p.settings.served() {
		a := p.ablations[model]
		t := table{header: []string{model.String()}}
		for _, seed := range ablationSeeds {
			for _, n := range a.PerRound {
				t.header = append(t.header, fmt.Sprintf("%s, N = %d", seed, n))
			}
		}
		for i, rounds := range a.Rounds {
			cells := []string{fmt.Sprintf("T = %d", rounds)}
			for _, seed := range ablationSeeds {
				for _, recall := range a.Recall[string(seed)][i] {
					cells = append(cells, number3(recall))
				}
			}
			t.add(cells...)
		}
		p.table(t)
		column := a.Recall[string(flashlight.SeedOnes)]
		first, last := column[0][0], column[len(column)-1][0]
		more, fewer := a.compare()
		p.say("%s sources. Learned seeds find more than the seed ones in %d of %d cells, and less in %d.", grouped(int64(a.Sources)), more, len(a.Rounds)*len(a.PerRound), fewer)
		p.say("The paper's first column, which we take to be N = 100, goes from %.3f to %.3f; here, on %v, from %.3f to %.3f. %s", paperAblationFrom, paperAblationTo, model, first, last, comparison(first, last))
	}
	return nil
}

// compare counts the cells in which learned seeds find more and less than the seed ones, by .001 or
// more.
func (a ablationRecord) compare() (more, fewer int) {
	for i, row := range a.Recall[string(flashlight.SeedOnes)] {
		for j, ones := range row {
			switch by := a.Recall[string(flashlight.SeedLearned)][i][j] - ones; {
			case by >= .001:
				more++
			case by <= -.001:
				fewer++
			}
		}
	}
	return more, fewer
}

// comparison says how the first and the last recall of the first column lie to the paper's.
func comparison(first, last float64) string {
	switch {
	case first < paperAblationFrom-.02 && last > paperAblationTo+.02:
		return "The first round has a lower recall than in the paper, and further rounds add more. The graph and the model differ from the paper's."
	case last > paperAblationTo+.02:
		return "That is more than in the paper: linear queries follow this decoder better. The graph and the model differ from the paper's."
	case last < paperAblationFrom-.02:
		return "That is less than in the paper: linear queries follow this decoder worse. The graph and the model differ from the paper's."
	default:
		return "That is close to the paper's, on another graph and model."
	}
}

func (p *paperPage) appendixA(img string) error {
	p.heading("What decoders can learn (appendix A)")
	p.say(`Random pairs x and y, and a label of variance 1. An MLP on x * y learns the dot product. A dot product
does not learn an MLP, although here it has a weight for each dimension and a bias. By symmetry a
full matrix between x and y would do no better. The errors are means over %d repeats, on
held-out pairs; always guessing the mean has an error of 1.`, p.settings.Fit.Repeats)
	t := table{header: []string{"learner", "d"}}
	for _, n := range p.settings.Fit.Samples {
		t.header = append(t.header, fmt.Sprintf("MSE of %s samples", grouped(int64(n))))
	}
	for _, f := range p.fits {
		for _, l := range f.Lines {
			cells := []string{l.Name, fmt.Sprint(f.Dim)}
			for i, v := range l.BySamples {
				cells = append(cells, fmt.Sprintf("%.2g ± %.1g", v, l.Spread[i]))
			}
			t.add(cells...)
		}
	}
	if err := plotFit(filepath.Join(img, "paper-fit.svg"), p.fits); err != nil {
		return err
	}
	p.image("Appendix A", "paper-fit.svg")
	p.table(t)
	p.say("The plot shows the error by epoch, with the most samples: Adam, %d epochs, %d hidden units.", p.settings.Fit.Epochs, p.settings.Fit.Hidden)
	p.say("Every dot product is exactly a HadamardMLP, without learning: two hidden units suffice, x.y = relu(sum of x * y) - relu(-sum of x * y). TestTwoHiddenUnits of bench/paperfit_test.go builds that decoder and compares its scores with those of the dot product.")
	return nil
}

func (p *paperPage) appendixC(string) error {
	p.heading("DotMax (appendix C)")
	p.say("DotMax retrieves the rows of highest inner product with the source and scores them by the decoder. The table has the recall of the best %d by the number of rows retrieved, with exact inner products. Beside it is Flashlight with 600 rows: three rounds of 200 as printed.", paperK)
	var all []int
	for _, d := range p.dotMaxes {
		if len(d.Retrieved) > len(all) {
			all = d.Retrieved
		}
	}
	t := table{header: []string{"graph", "Flashlight, 600", "learned seeds, 600"}}
	for _, n := range all {
		t.header = append(t.header, "DotMax, "+grouped(int64(n)))
	}
	for _, model := range p.settings.served() {
		d := p.dotMaxes[model]
		cells := []string{model.String(), number3(d.Flashlight), number3(d.Learned)}
		for i := range all {
			if i < len(d.DotMax) {
				cells = append(cells, number3(d.DotMax[i]))
			} else {
				cells = append(cells, "")
			}
		}
		t.add(cells...)
	}
	p.table(t)
	for _, model := range p.settings.served() {
		p.say("%s", dotMaxSentence(model.String(), p.dotMaxes[model]))
	}
	p.say("Cells are empty where the graph has fewer nodes. The paper goes to 100,000 rows.")
	return nil
}

// dotMaxSentence says how many rows DotMax needs for what Flashlight finds.
func dotMaxSentence(graph string, d dotMaxRecord) string {
	for i, recall := range d.DotMax {
		if recall >= d.Flashlight-1e-6 {
			return fmt.Sprintf("On %s DotMax needs at most %s of %s rows for what Flashlight finds among 600.", graph, grouped(int64(d.Retrieved[i])), grouped(int64(d.Nodes)))
		}
	}
	if len(d.Retrieved) == 0 {
		return fmt.Sprintf("%s is too small for DotMax at 1,000 rows.", graph)
	}
	return fmt.Sprintf("On %s DotMax does not find among %s of %s rows what Flashlight finds among 600.", graph, grouped(int64(d.Retrieved[len(d.Retrieved)-1])), grouped(int64(d.Nodes)))
}

func (p *paperPage) complexitySection(img string) error {
	c := p.complexity
	p.heading("Complexity")
	p.say("Each part of the candidates of %v has an index of its own. The sources are the same. The default plan begins with the seed ones. The plan with learned seeds is one round of 500. All were timed in turns.", paperServing{c.Graph, train.EncoderKind(c.Encoder)})
	t := table{header: []string{"candidates", "exact scan, ms", "Flashlight, ms", "recall", "learned seeds, ms", "recall"}}
	rows, exact, _ := c.line(exactLine)
	_, own, ownRecall := c.line(oursLine)
	_, learned, learnedRecall := c.line(learnedLine)
	for i, n := range rows {
		t.add(grouped(int64(n)), significant(exact[i]), significant(own[i]), number3(ownRecall[i]), significant(learned[i]), number3(learnedRecall[i]))
	}
	exponents := []string{"exponent of n"}
	for _, ms := range [][]float64{exact, own, learned} {
		_, e := fitExponent(rows, ms)
		exponents = append(exponents, fmt.Sprintf("%.2f", e), "")
	}
	t.add(append(exponents[:2:2], exponents[3:]...)...)
	if err := plotComplexity(filepath.Join(img, "paper-complexity.svg"), c); err != nil {
		return err
	}
	p.image("Complexity", "paper-complexity.svg")
	p.table(t)
	p.say("The exponent is fitted by least squares on logarithms. Where the recall changes with n, the times are not those of equally good answers.")
	if rows[len(rows)-1] < 50_000 {
		p.say("The paper asks about 50,000 nodes and more; this run has no graph of that size. On small graphs the fixed part of a query, such as binding the source, takes most of its time.")
	}
	return nil
}
