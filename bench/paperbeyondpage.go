package main

import (
	"fmt"
	"strings"

	"github.com/flashdb/flashdb/flashlight"
)

// beyondAt is the number of rows at which the sentences compare.
const beyondAt = 300

// beyond writes the section about decoders that the paper does not have.
func (p *paperPage) beyond(string) error {
	p.heading("Beyond the paper")
	if len(p.beyonds) == 0 {
		p.say("This run has only the paper's decoders. The flag -beyond names others, which are measured on a graph of one kind of node.")
		return nil
	}
	p.say(`Decoders that the paper does not have, trained on %s with the first encoder, and asked with the
same budgets of rows scored: networks with layer norms and residuals, and a mixture of logits (mol), as
[import.md](import.md#a-mixture-of-logits) describes it. Rows are found by exact inner products, without
an index, so that a recall is of the queries alone. Plans have %d anchors and no early stop. Each cell has the mean and the worst recall of the
best %d over the sources.`, p.settings.Beyond.Graph, budgetAnchors, paperK)
	t := table{header: []string{"decoder", "weights", "epochs", p.beyondMetric(), "sources", "seeds learned from", "exact scan, ms"}}
	for i := range p.beyonds {
		b := &p.beyonds[i]
		t.add(b.Decoder, grouped(int64(b.Weights)), fmt.Sprint(b.Trained.Epochs), number3(b.metric()), fmt.Sprint(b.Sources), fmt.Sprint(b.Stored), significant(b.ExactMS))
	}
	p.table(t)
	p.say("The exact scan is the time that one source took on one core, beside what else was running.%s", p.wideDecoders())
	for i := range p.beyonds {
		b := &p.beyonds[i]
		t := budgetTable(b.Rows)
		t.header[0] = b.Model + ", rows scored"
		p.table(t)
		p.say("%s", b.sentence())
	}
	return nil
}

// wideDecoders says what is less of decoders of many weights.
func (p *paperPage) wideDecoders() string {
	var names, little []string
	best := 0.0
	for i := range p.beyonds {
		best = max(best, p.beyonds[i].metric())
	}
	for i := range p.beyonds {
		b := &p.beyonds[i]
		if !b.Training.wide() {
			continue
		}
		names = append(names, b.Model)
		if b.metric() < best/2 {
			little = append(little, b.Model)
		}
	}
	if len(names) == 0 {
		return ""
	}
	text := fmt.Sprintf(" Of %s a score costs so much that the training is short, and the metric is of %d test links.", strings.Join(names, ", "), wideLinks)
	if len(little) > 0 {
		text += fmt.Sprintf(" The metric of %s is less than half of the best: it has learned little, and its recalls are not those of a trained network. [measurements.md](measurements.md) has eight layers of 1,024 that were trained for longer.", strings.Join(little, ", "))
	}
	return text
}

// beyondMetric names the metric of the table: the MRR where there is one.
func (p *paperPage) beyondMetric() string {
	if _, ok := p.beyonds[0].Trained.Metrics[mrrName]; ok {
		return metricName(mrrName)
	}
	return metricName(hitsName(20))
}

func (b *beyondRecord) metric() float64 {
	if v, ok := b.Trained.Metrics[mrrName]; ok {
		return v
	}
	return b.Trained.Metrics[hitsName(20)]
}

// sentence compares the ways of one decoder.
func (b *beyondRecord) sentence() string {
	ones := planRow(flashlight.SeedOnes, 4)
	own := b.row(ones)
	best, bestName := own.at(beyondAt), ones
	for i := range b.Rows {
		row := &b.Rows[i]
		if row.isPlan() && row.at(beyondAt) > best {
			best, bestName = row.at(beyondAt), row.Name
		}
	}
	if b.Model != molModel {
		return fmt.Sprintf("With %d rows, %q has the highest mean recall here, %.3f; one round from ones has %.3f.", beyondAt, bestName, best, b.row(planRow(flashlight.SeedOnes, 1)).at(beyondAt))
	}
	theirs, theirName := 0.0, ""
	for _, name := range []string{eachPair, meanPair, halfPairs} {
		if v := b.row(name).at(beyondAt); v > theirs {
			theirs, theirName = v, name
		}
	}
	verdict := "below"
	switch {
	case best > theirs:
		verdict = "above"
	case best == theirs:
		verdict = "equal to"
	}
	return fmt.Sprintf("With %d rows, %q has the mean recall %.3f. That is %s the best of the mixture's own retrieval in two stages, %q, with %.3f: the best rows by each pair of components, by the mean of the pairs, or half of each, and then the exact score, as the code of RAILS (Ding and Zhai, 2024) does it. [measurements.md](measurements.md) has a mixture that was trained for longer, on other embeddings.",
		beyondAt, bestName, best, verdict, theirName, theirs)
}

// isPlan tells a plan of Flashlight from a retrieval in two stages.
func (r *budgetRow) isPlan() bool { return strings.HasPrefix(r.Name, "seed ") }
