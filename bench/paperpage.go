package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// paperPage is all that a run measured, and the page made of it.
type paperPage struct {
	settings   paperSettings
	machine    machineRecord
	took       time.Duration
	fits       []fitRecord
	graphs     map[string]paperGraphInfo
	trained    map[string]trainedRecord    // by modelKey
	indexed    map[string]flashlightRecord // by modelKey
	curves     map[paperServing]curveRecord
	ablations  map[paperServing]ablationRecord
	dotMaxes   map[paperServing]dotMaxRecord
	speeds     map[paperServing]speedRecord
	complexity complexityRecord
	long       *longRecord
	beyonds    []beyondRecord
	triples    map[string]triplesRecord
	related    map[string]relationRecord // by relationKey
	hours      map[string]hoursRecord    // by graph

	text strings.Builder
}

// measure measures what the records do not hold yet.
func (r *paperRun) measure(ctx context.Context, long time.Duration) (*paperPage, error) {
	p := &paperPage{
		settings: r.settings, graphs: map[string]paperGraphInfo{},
		trained: map[string]trainedRecord{}, indexed: map[string]flashlightRecord{}, curves: map[paperServing]curveRecord{},
		ablations: map[paperServing]ablationRecord{}, dotMaxes: map[paperServing]dotMaxRecord{}, speeds: map[paperServing]speedRecord{},
		hours: map[string]hoursRecord{}, triples: map[string]triplesRecord{}, related: map[string]relationRecord{},
	}
	var err error
	if p.machine, err = recorded(r.records, "machine", func() (machineRecord, error) { return thisMachine(r.log), nil }); err != nil {
		return nil, err
	}
	for _, dim := range r.settings.Fit.Dims {
		fit, err := r.fitDim(ctx, dim)
		if err != nil {
			return nil, err
		}
		p.fits = append(p.fits, fit)
	}
	for _, graph := range r.settings.all() {
		if err := r.measureGraph(ctx, graph, p); err != nil {
			return nil, err
		}
	}
	if p.graphs[r.settings.Beyond.Graph].Sources == 0 {
		for _, name := range r.settings.Beyond.Models {
			record, err := r.beyond(ctx, name)
			if err != nil {
				return nil, err
			}
			p.beyonds = append(p.beyonds, record)
		}
	}
	for _, name := range r.settings.Triples {
		if err := r.triples(ctx, name, p); err != nil {
			return nil, err
		}
	}
	if p.complexity, err = r.complexity(ctx, p.largest()); err != nil {
		return nil, err
	}
	if long > 0 {
		record, err := r.long(ctx, long)
		if err != nil {
			return nil, err
		}
		p.long = &record
	}
	p.took = r.records.total()
	return p, nil
}

// measureGraph trains the models of one graph, where it is to be trained, and measures all that is
// measured of a graph.
func (r *paperRun) measureGraph(ctx context.Context, graph string, p *paperPage) error {
	info, err := recorded(r.records, "graph/"+graph, func() (paperGraphInfo, error) {
		g, err := r.graph(graph)
		if err != nil {
			return paperGraphInfo{}, err
		}
		return g.info(), nil
	})
	if err != nil {
		return err
	}
	p.graphs[graph] = info
	for _, encoder := range r.settings.encodersOf(graph) {
		for seed := 1; seed <= r.settings.seedsOf(encoder); seed++ {
			if err := r.measureSeed(ctx, graph, encoder, seed, p); err != nil {
				return err
			}
		}
		at := paperServing{graph, encoder}
		if p.speeds[at], err = r.speed(ctx, at); err != nil {
			return err
		}
	}
	for _, at := range r.settings.served() {
		if at.graph != graph {
			continue
		}
		if err := r.measureModel(ctx, at, p); err != nil {
			return err
		}
	}
	if r.settings.Probe > 0 && slices.Contains(r.settings.Graphs, graph) {
		if p.hours[graph], err = r.hours(ctx, graph); err != nil {
			return err
		}
	}
	delete(r.opened, graph) // the next one may be large
	return nil
}

// measureSeed measures one row of table 2 with one seed.
func (r *paperRun) measureSeed(ctx context.Context, graph string, encoder train.EncoderKind, seed int, p *paperPage) (err error) {
	kinds := paperDecoders
	if encoder == given {
		kinds = givenDecoders
	}
	for _, d := range kinds {
		key := modelKey(graph, encoder, d, seed)
		if encoder == given {
			p.trained[key], err = r.givenScore(ctx, graph, d)
		} else {
			p.trained[key], err = r.trained(ctx, graph, encoder, d, seed)
		}
		if err != nil {
			return err
		}
	}
	key := modelKey(graph, encoder, decoder.HadamardMLP, seed)
	p.indexed[key], err = r.flashlighted(ctx, graph, encoder, seed)
	return err
}

// largest is the model of the most candidates, the given one where there are two.
func (p *paperPage) largest() paperServing {
	models := p.settings.served()
	slices.Reverse(models)
	return slices.MaxFunc(models, func(a, b paperServing) int { return p.curves[a].Nodes - p.curves[b].Nodes })
}

// write writes the page and its plots, in folder img beside it.
func (p *paperPage) write(path string) error {
	img := filepath.Join(filepath.Dir(path), "img")
	if err := os.MkdirAll(img, 0o755); err != nil {
		return err
	}
	for _, section := range []func(img string) error{
		p.introduction, p.tableOne, p.tableTwo, p.recallAtK, p.speed, p.tradeOff, p.ablation, p.appendixA, p.appendixC, p.complexitySection, p.beyond,
		p.relations, p.fullHours,
	} {
		if err := section(img); err != nil {
			return err
		}
	}
	return os.WriteFile(path, []byte(strings.TrimRight(p.text.String(), "\n")+"\n"), 0o644)
}

// heading begins a section.
func (p *paperPage) heading(text string) { fmt.Fprintf(&p.text, "## %s\n\n", text) }

// command shows a command line.
func (p *paperPage) command(text string) { fmt.Fprintf(&p.text, "    %s\n\n", text) }

// image shows a plot of folder img.
func (p *paperPage) image(title, file string) { fmt.Fprintf(&p.text, "![%s](img/%s)\n\n", title, file) }

// table shows a table.
func (p *paperPage) table(t table) { p.text.WriteString(t.markdown() + "\n") }

// pageWidth is how many columns a line of prose has at most.
const pageWidth = 100

// say writes a paragraph, in lines of the width of a page.
func (p *paperPage) say(format string, args ...any) {
	width := 0
	for _, word := range strings.Fields(fmt.Sprintf(format, args...)) {
		n := utf8.RuneCountInString(word)
		switch {
		case width == 0:
		case width+1+n > pageWidth:
			p.text.WriteByte('\n')
			width = 0
		default:
			p.text.WriteByte(' ')
			width++
		}
		p.text.WriteString(word)
		width += n
	}
	p.text.WriteString("\n\n")
}

// joined lists encoders with commas between them.
func joined(encoders []train.EncoderKind) string {
	names := make([]string, len(encoders))
	for i, e := range encoders {
		names[i] = string(e)
	}
	return strings.Join(names, ",")
}

// commandLine is the command of this page.
func (p *paperPage) commandLine() string {
	line := "cd bench && go run . paper"
	if p.settings.Quick {
		line += " -quick"
	}
	line += " -data DATA -graphs " + strings.Join(p.settings.Graphs, ",")
	if len(p.settings.Encoders) < len(paperEncoders) {
		line += " -encoders " + joined(p.settings.Encoders)
	}
	if len(p.settings.Given) > 0 {
		line += " -given " + strings.Join(p.settings.Given, ",")
	}
	line += fmt.Sprintf(" -seeds %d", p.settings.Seeds)
	if models := strings.Join(p.settings.Beyond.Models, ","); models != defaultBeyond {
		line += fmt.Sprintf(" -beyond %q", models)
	}
	if p.long != nil {
		line += " -long " + p.long.budget()
	}
	return line
}

// loads says between which loads the parts with speeds began.
func (p *paperPage) loads() string {
	loads := []string{p.complexity.Load}
	for _, s := range p.speeds {
		loads = append(loads, s.Load)
	}
	var values []float64
	for _, text := range loads {
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return ""
	}
	return fmt.Sprintf("; when the parts with speeds began it was %.1f to %.1f", slices.Min(values), slices.Max(values))
}

func (p *paperPage) introduction(string) error {
	p.text.WriteString("# The paper, reproduced\n\n<!-- written by \"bench paper\"; run that again in place of a change by hand -->\n\n")
	p.say(`The paper is Wang, Hooi, Liu, Zhao, Guo and Shah, "Flashlight: Scalable Link Prediction with
Effective Decoders" (LoG 2022, arXiv 2209.10100). This page repeats its measurements with
this project's own code: package train trains the models, packages index/ivf and flashlight answer
the queries. One command trains, measures and writes the page:`)
	p.command(p.commandLine())
	kind := "a full run"
	if p.settings.Quick {
		kind = "a quick run: small models, few epochs, fewer test links"
	}
	longer := ""
	if p.long != nil {
		longer = ", without the longer training of table 2"
	}
	p.say("This is %s. All parts together took %.0f minutes on the machine below%s, beside other programs. A finished part is kept in a file, so that the same command continues a run that was killed.",
		kind, p.took.Minutes(), longer)
	if p.settings.Quick {
		p.say("The same command without -quick is the full run. [Below](#what-the-full-run-takes) is how long that takes.")
	}
	t := machineTable([]machineRecord{p.machine})
	p.table(t)
	p.say("The load is the number of other processes that were running when the run began%s. Speeds and times of queries are measured in processor time, so that the load matters less; shared caches still make them worse. All ways to answer that one table compares of one model were timed in one process, in turns, so that their ratios are worth more than the speeds. Shares, errors and recalls do not depend on the load.", p.loads())
	if len(p.settings.Given) > 0 {
		p.say("A model called given is the embeddings and the decoder in the graph's own folder (%s). They were trained for longer than a quick run trains, so that their figures are nearer to those of a model in use.", strings.Join(p.settings.Given, ", "))
	}
	p.say(`Of the paper's own figures, this page has only those that this project has a source for: the
HadamardMLP column of ogbl-ddi in table 2, the range of the first column of the ablation, and the
abstract's "more than 100 times" on ogbl-citation2. An empty cell in a column of the paper's means
that this project does not know the figure, not that the paper has none.`)
	return nil
}
