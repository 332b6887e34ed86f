package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/terminal"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/train"
)

// A rankRequest is what eval's flags say of edges to rank.
type rankRequest struct {
	edges     edgeSource
	negatives string
	sample    int
	metrics   string
	byRow     bool
}

func (r *rankRequest) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&r.edges.file, "edges", "", "rank the targets of the edges of this `file`: how well the decoder predicts")
	fs.StringVar(&r.negatives, "negatives", "", "with --edges: rank among the edges of this `file`, one list for all, as OGB does")
	fs.IntVar(&r.sample, "sample", 0, "with --edges: rank among so many random `candidates` each (default among all nodes)")
	fs.StringVar(&r.metrics, "metric", "", "with --edges: `list` of metrics (default mrr,hits@1,hits@10,hits@50,auc)")
	fs.BoolVar(&r.byRow, "ids", false, "the edges name nodes by row number of the imported file, not by key")
	r.edges.register(cmd)
}

// rankFlags are eval's flags that need --edges.
var rankFlags = []string{"negatives", "sample", "metric", "ids", "format", "source-column", "target-column", "relation-column", "time-column"}

// edgeless are eval's flags that have no meaning with --edges.
var edgeless = []string{"oracle", "keys-from", "sources", "k", "exact-sources", "filter", "include-linked", "mode", "recall", "rounds", "per-round", "probes", "max-scored"}

func (r *rankRequest) validate(cmd *cobra.Command) error {
	for _, name := range rankFlags {
		if r.edges.file == "" && cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s goes with --edges, the file of edges to rank", name)
		}
	}
	if r.edges.file == "" {
		return nil
	}
	for _, name := range edgeless {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s and --edges exclude each other: edges are ranked by exact scores", name)
		}
	}
	switch {
	case r.negatives != "" && cmd.Flags().Changed("sample"):
		return errors.New("--negatives and --sample exclude each other")
	case cmd.Flags().Changed("sample") && r.sample < 1:
		return fmt.Errorf("--sample is %d: want a positive number", r.sample)
	}
	_, err := r.wanted()
	return err
}

// A metricSet is which metrics are asked for.
type metricSet struct {
	mrr, auc bool
	hits     []int
}

func (r *rankRequest) wanted() (metricSet, error) {
	if r.metrics == "" && r.negatives != "" {
		return metricSet{auc: true, hits: officialK}, nil
	}
	if r.metrics == "" {
		return metricSet{mrr: true, auc: true, hits: []int{1, 10, 50}}, nil
	}
	var m metricSet
	for word := range strings.SplitSeq(r.metrics, ",") {
		switch word = strings.ToLower(strings.TrimSpace(word)); word {
		case "mrr":
			if r.negatives != "" {
				return m, errors.New("--metric mrr ranks an edge among its own candidates, and --negatives has one list for all edges: use hits@K or auc")
			}
			m.mrr = true
		case "auc":
			m.auc = true
		default:
			text, isHits := strings.CutPrefix(word, "hits@")
			k, err := strconv.Atoi(text)
			if !isHits || err != nil || k < 1 {
				return m, fmt.Errorf("--metric %q is not known: want mrr, auc, or hits@ and a number", word)
			}
			if !slices.Contains(m.hits, k) {
				m.hits = append(m.hits, k)
			}
		}
	}
	slices.Sort(m.hits)
	return m, nil
}

// A ranking is edges of a file, and the rows they are ranked among.
type ranking struct {
	*app
	db       database
	target   collection
	sources  collection // nil: the target
	r        *rankRequest
	progress *terminal.Progress

	nodes, of  *nodeIndex // of the targets and of the sources
	numbers    []int32    // of each id of the target: its candidate; -1: there is none
	task       train.Task
	sourceKeys []string // of the task's rows that are sources alone
	report     rankReport
}

// A rankReport is what eval --edges prints beside the metrics.
type rankReport struct {
	unknown, selfLoops, known int
	against                   string
	seconds                   float64
}

// evalEdges ranks the edges of a file by exact scores.
func (a *app) evalEdges(ctx context.Context, dir, name, sourceName, decoderName string, seed uint64, r *rankRequest) error {
	want, err := r.wanted()
	if err != nil {
		return err
	}
	return a.withCollection(ctx, dir, name, flashdb.Options{ReadOnly: true}, func(db database, c collection) error {
		start := time.Now()
		k := ranking{app: a, db: db, target: c, r: r, progress: terminal.NewProgress(a.err)}
		defer k.progress.Clear()
		if sourceName != "" && sourceName != name {
			if k.sources, err = collectionOf(ctx, db, sourceName); err != nil {
				return err
			}
			if k.sources.Schema().Dim != c.Schema().Dim {
				return fmt.Errorf("sources of %s have %s, nodes of %s %d: a decoder scores pairs of one width",
					sourceName, show.Count(k.sources.Schema().Dim, "value"), name, c.Schema().Dim)
			}
		}
		k.task = train.Task{Dim: c.Schema().Dim, Hits: want.hits, Seed: seed, Sample: r.sample}
		if err := k.load(ctx, decoderName); err != nil {
			return err
		}
		k.progress.Update("rank", 0, 1)
		m, err := train.Evaluate(ctx, &k.task)
		if err != nil {
			return err
		}
		k.progress.Clear()
		k.report.seconds = time.Since(start).Seconds()
		return k.print(m, want)
	})
}

// load reads edges, negatives, embeddings, decoders and known links.
func (k *ranking) load(ctx context.Context, decoderName string) (err error) {
	if k.nodes, err = newNodeIndex(ctx, k.target); err != nil {
		return err
	}
	k.of = k.nodes
	if k.sources != nil {
		if k.of, err = newNodeIndex(ctx, k.sources); err != nil {
			return err
		}
	}
	edges, relations, err := k.read(ctx, k.r.edges)
	if err != nil {
		return err
	}
	var negatives []idPair
	if k.r.negatives != "" {
		s := k.r.edges
		s.file, s.format = k.r.negatives, ""
		if negatives, _, err = k.read(ctx, s); err != nil {
			return err
		}
		k.report.against = show.Count(len(negatives), "negative") + " of " + k.r.negatives
	}
	if err := k.readEmbeddings(ctx, edges, negatives); err != nil {
		return err
	}
	if err := k.decoders(ctx, decoderName, relations); err != nil {
		return err
	}
	switch {
	case negatives != nil:
		return nil
	case k.r.sample > 0:
		k.report.against = show.Count(k.r.sample, "random candidate") + " each"
	default:
		k.task.All = true
		k.report.against = "all nodes"
	}
	return k.knownLinks(ctx, edges)
}

// read resolves the edges of a file. Those of unknown nodes are counted, and left out.
func (k *ranking) read(ctx context.Context, s edgeSource) (pairs []idPair, relations []string, err error) {
	r, remove, err := k.openEdgeSource(s, false)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.Close(), remove()) }()
	byRow := k.r.byRow || s.isNumbered()
	find := func(x *nodeIndex, key string) (uint32, error) {
		if !byRow {
			return x.byKey(key)
		}
		row, err := parseRow(key)
		if err != nil {
			return 0, err
		}
		return x.byRow(row)
	}
	var missing error
	for n := int64(0); ; n++ {
		var e edgeOf
		if err := r.Next(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, err
		}
		if n%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, nil, err
			}
			k.progress.Update("read "+s.file, n, 0)
		}
		source, err := find(k.of, e.Source)
		target := uint32(0)
		if err == nil {
			target, err = find(k.nodes, e.Target)
		}
		switch {
		case err != nil:
			k.report.unknown++
			missing = err
		case k.sources == nil && source == target:
			k.report.selfLoops++
		default:
			pairs, relations = append(pairs, idPair{source, target}), append(relations, e.Relation)
		}
	}
	if len(pairs) == 0 {
		if missing != nil {
			return nil, nil, fmt.Errorf("%s: no edge is between nodes that are there: %w%s", s.file, missing, k.rowHint(byRow))
		}
		return nil, nil, fmt.Errorf("%s holds no edges to rank", s.file)
	}
	return pairs, relations, nil
}

func (k *ranking) rowHint(byRow bool) string {
	if byRow {
		return ""
	}
	return ": if these are row numbers of the imported file, say --ids"
}

// decoders finds the decoder, or one for each relation that the edges have.
func (k *ranking) decoders(ctx context.Context, name string, relations []string) error {
	names, err := k.target.Decoders(ctx)
	if err != nil {
		return err
	}
	if name == "" && len(names) > 1 && slices.Contains(names, relations[0]) {
		numbers := map[string]uint16{}
		for i := range k.task.Edges {
			relation := relations[i]
			at, ok := numbers[relation]
			if !ok {
				d, err := k.target.Decoder(ctx, relation)
				if err != nil {
					return err
				}
				at = uint16(len(numbers))
				numbers[relation] = at
				k.task.Decoders = append(k.task.Decoders, d)
			}
			k.task.Edges[i].Relation = at
		}
		return nil
	}
	d, err := k.target.Decoder(ctx, name)
	k.task.Decoders = []decoder.Decoder{d}
	return err
}
