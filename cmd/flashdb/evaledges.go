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
	perEdge   bool // negatives are of each edge
	sample    int
	metrics   string
	byRow     bool
	relation  string // of every edge, where the file has none
}

func (r *rankRequest) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&r.edges.file, "edges", "", "rank the targets of the edges of this `file`: how well the decoder predicts")
	fs.StringVar(&r.negatives, "negatives", "", "with --edges: rank among the edges of this `file`, or its nodes for each edge")
	fs.BoolVar(&r.perEdge, "per-edge", false, "--negatives has a line or row for each edge (default: found out)")
	fs.IntVar(&r.sample, "sample", 0, "with --edges: rank among so many random `candidates` each (default among all nodes)")
	fs.StringVar(&r.metrics, "metric", "", "with --edges: `list` of metrics (default mrr,hits@1,hits@10,hits@50,auc)")
	fs.BoolVar(&r.byRow, "ids", false, "the edges name nodes by row number of the imported file, not by key")
	r.edges.register(cmd)
}

// rankFlags are eval's flags that need --edges.
var rankFlags = []string{"negatives", "per-edge", "sample", "metric", "ids", "format", "source-column", "target-column", "relation-column", "time-column"}

// edgeless are eval's flags that have no meaning with --edges.
var edgeless = []string{"oracle", "keys-from", "sources", "k", "exact-sources", "filter", "include-linked", "mode", "recall", "rounds", "per-round", "probes", "max-scored", "reverse"}

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
	case r.perEdge && r.negatives == "":
		return errors.New("--per-edge goes with --negatives, the file of the negatives of each edge")
	case cmd.Flags().Changed("sample") && r.sample < 1:
		return fmt.Errorf("--sample is %d: want a positive number", r.sample)
	}
	_, err := r.wanted(false)
	return err
}

// A metricSet is which metrics are asked for.
type metricSet struct {
	mrr, auc bool
	hits     []int
}

// wanted reads the metrics; shared says that all edges have one list of negatives.
func (r *rankRequest) wanted(shared bool) (metricSet, error) {
	if r.metrics == "" && shared {
		return metricSet{auc: true, hits: officialK}, nil
	}
	if r.metrics == "" {
		return metricSet{mrr: true, auc: true, hits: []int{1, 10, 50}}, nil
	}
	var m metricSet
	for word := range strings.SplitSeq(r.metrics, ",") {
		switch word = strings.ToLower(strings.TrimSpace(word)); word {
		case "mrr":
			if shared {
				return m, errors.New("--metric mrr ranks an edge among its own candidates, and --negatives has one list for all edges: use hits@K or auc, or --per-edge if it has a line for each edge")
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

	related    bool       // the decoder has relations
	named      []string   // the relations of the task's edges, by number; nil: the decoder has none
	nodes, of  *nodeIndex // of the targets and of the sources
	numbers    []int32    // of each id of the target: its candidate; -1: there is none
	task       train.Task
	sourceKeys []string // of the task's rows that are sources alone
	report     rankReport
}

// A rankReport is what eval --edges prints beside the metrics.
type rankReport struct {
	unknown, selfLoops, known int
	rowless                   int // edges of nodes without an embedding
	ownTargets                int // edges whose negatives hold their own target
	against                   string
	seconds                   float64
}

// evalEdges ranks the edges of a file by exact scores.
func (a *app) evalEdges(ctx context.Context, dir, name, sourceName, decoderName string, seed uint64, r *rankRequest) error {
	return a.withCollection(ctx, dir, name, flashdb.Options{ReadOnly: true}, func(db database, c collection) (err error) {
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
		k.task = train.Task{Dim: c.Schema().Dim, Seed: seed, Sample: r.sample}
		if err := k.load(ctx, decoderName); err != nil {
			return err
		}
		want, err := r.wanted(k.task.NegativeEdges != nil)
		if err != nil {
			return err
		}
		if k.named != nil && r.metrics == "" && k.task.NegativeEdges == nil {
			want = metricSet{mrr: true, hits: relatedK}
		}
		k.task.Hits = want.hits
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
	if err := k.findRowless(ctx); err != nil {
		return err
	}
	d, err := k.target.Decoder(ctx, decoderName)
	if err != nil {
		return err
	}
	k.related = len(d.Spec().Relations) > 0
	edges, err := k.read(ctx, k.r.edges)
	if err != nil {
		return err
	}
	var negatives []idPair
	if k.r.negatives != "" {
		if negatives, err = k.readNegatives(ctx, edges); err != nil {
			return err
		}
	}
	if err := k.readEmbeddings(ctx, edges.pairs, negatives); err != nil {
		return err
	}
	if err := k.decoders(d, edges.relations); err != nil {
		return err
	}
	switch {
	case k.r.negatives != "":
		return nil
	case k.r.sample > 0:
		k.report.against = show.Count(k.r.sample, "random candidate") + " each"
	default:
		k.task.All = true
		k.report.against = "all nodes"
	}
	return k.knownLinks(ctx, edges.pairs)
}

// An edgeList is the edges of a file whose nodes are there.
type edgeList struct {
	pairs     []idPair
	relations []string
	places    []int // of each among all edges of the file, from 0
	lines     int   // edges of the file
}

var errRowless = errors.New("their nodes have no embedding in the live release")

// read resolves the edges of a file. Those of unknown nodes, and of nodes
// without an embedding, are counted and left out.
func (k *ranking) read(ctx context.Context, s edgeSource) (l *edgeList, err error) {
	r, remove, err := k.openTriples(s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close(), remove()) }()
	byRow := k.r.byRow || s.isNumbered()
	l = &edgeList{}
	var missing error
	for ; ; l.lines++ {
		var e edgeOf
		if err := r.Next(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if l.lines%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			k.progress.Update("read "+s.file, int64(l.lines), 0)
		}
		source, err := k.of.find(e.Source, byRow)
		target := uint32(0)
		if err == nil {
			target, err = k.nodes.find(e.Target, byRow)
		}
		switch {
		case err != nil:
			k.report.unknown++
			missing = err
		case k.of.rowless[source] || k.nodes.rowless[target]:
			k.report.rowless++
			missing = errRowless
		case k.sources == nil && source == target:
			k.report.selfLoops++
		default:
			l.pairs = append(l.pairs, idPair{source: source, target: target})
			l.relations, l.places = append(l.relations, e.Relation), append(l.places, l.lines)
		}
	}
	if len(l.pairs) == 0 {
		if missing != nil {
			if errors.Is(missing, errRowless) {
				return nil, fmt.Errorf("%s: no edge can be ranked: %w", s.file, missing)
			}
			return nil, fmt.Errorf("%s: no edge is between nodes that are there: %w%s", s.file, missing, k.rowHint(byRow))
		}
		return nil, fmt.Errorf("%s holds no edges to rank", s.file)
	}
	return l, nil
}

func (k *ranking) rowHint(byRow bool) string {
	if byRow {
		return ""
	}
	return ": if these are row numbers of the imported file, say --ids"
}

// decoders finds the decoder, or those of the relations that the edges have.
func (k *ranking) decoders(d decoder.Decoder, relations []string) error {
	if k.related {
		return k.relate(d, relations)
	}
	k.task.Decoders = []decoder.Decoder{d}
	_, err := decoder.ForRelation(d, k.r.relation, false)
	return err
}
