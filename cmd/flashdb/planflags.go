package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

// planFlags are the flags that choose a decoder and a plan; predict and eval share them.
type planFlags struct {
	opts        flashdb.PredictOptions
	plan        flashlight.Plan
	mode        string
	probes      probesFlag
	recall      shareFlag
	tail        shareFlag
	anchorsFrom string
	seed        string
}

func (p *planFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&p.opts.Decoder, "decoder", "", "`name` of the decoder; not needed if there is only one")
	fs.StringVar(&p.opts.Relation, "relation", "", "`name` of the relation to predict, for a decoder that has relations")
	fs.BoolVar(&p.opts.Reverse, "reverse", false, "with --relation: predict nodes that have it to the source")
	fs.StringVar(&p.mode, "mode", "auto", "auto, paper (Algorithm 1 as printed) or exact (score every node)")
	fs.Var(&p.recall, "recall", "mean recall to reach, such as 0.95 or 95% of the exact answer")
	fs.IntVar(&p.plan.Rounds, "rounds", 0, "Flashlight rounds at most")
	fs.IntVar(&p.plan.PerRound, "per-round", 0, "rows scored per round")
	fs.Var(&p.probes, "probes", "how much of the index to visit: a number of lists, a share such as 5%, or all")
	fs.IntVar(&p.plan.Growth, "growth", 0, "rounds over which the visited part grows to --probes; 1: at once (default 3)")
	fs.IntVar(&p.plan.Patience, "patience", 0, "stop after this many rounds in a row without a new hit; -1: never (default 2)")
	fs.Var(&p.tail, "tail", "stop if at most this share of the hits is in a round's last third, such as 3%")
	fs.IntVar(&p.plan.Anchors, "anchors", 0, "retrieved nodes whose mean gradient is the next query")
	fs.StringVar(&p.anchorsFrom, "anchors-from", "", "take anchors from: round, all (rounds), both, or round+ones")
	fs.StringVar(&p.seed, "seed", "", "first query: ones, source, both, learned, learned+ones or components")
	fs.IntVar(&p.plan.MaxScored, "max-scored", 0, "rows scored at most, in all")
	completeWords(cmd, "mode", "auto", "paper", "exact")
	completeWords(cmd, "anchors-from", "round", "all", "both", "round+ones")
	completeWords(cmd, "seed", "ones", "source", "both", "learned", "learned+ones", "components")
}

// patientRounds are more than a plan has, so that it never stops for want of a new hit.
const patientRounds = 1000

// options returns what the flags say. A flag that was given must say something: zero is the
// options' way to ask for the default, and a slip of the caller's.
func (p *planFlags) options(fs *pflag.FlagSet) (flashdb.PredictOptions, error) {
	o, plan := p.opts, p.plan
	o.Recall, o.Exact = float64(p.recall), p.mode == "exact"
	if p.mode == "paper" {
		plan.Method = flashlight.MethodPaper
	}
	if plan.Patience == -1 {
		plan.Patience = patientRounds
	}
	plan.Probes, plan.Tail = p.probes.probes, float64(p.tail)
	plan.AnchorsFrom, plan.Seed = flashlight.AnchorsFrom(p.anchorsFrom), flashlight.Seed(p.seed)
	var errs []error
	for _, f := range []struct {
		name  string
		value int
	}{
		{"rounds", plan.Rounds},
		{"per-round", plan.PerRound},
		{"growth", plan.Growth},
		{"patience", plan.Patience},
		{"anchors", plan.Anchors},
		{"max-scored", plan.MaxScored},
	} {
		if fs.Changed(f.name) && f.value < 1 {
			more := ""
			if f.name == "patience" {
				more = ", or -1"
			}
			errs = append(errs, fmt.Errorf("--%s is %d: want a positive number%s", f.name, f.value, more))
		}
	}
	oneOf := func(name, value string, allowed ...string) {
		for _, a := range allowed {
			if value == a {
				return
			}
		}
		if fs.Changed(name) {
			errs = append(errs, fmt.Errorf("--%s %q: use %s", name, value, strings.Join(allowed, ", ")))
		}
	}
	oneOf("mode", p.mode, "auto", "paper", "exact")
	oneOf("anchors-from", p.anchorsFrom, "round", "all", "both", "round+ones")
	oneOf("seed", p.seed, "ones", "source", "both", "learned", "learned+ones", "components")
	if plan != (flashlight.Plan{}) {
		o.Plan = &plan
	}
	if len(errs) == 0 {
		errs = append(errs, p.conflicts(o), o.Validate())
	}
	return o, errors.Join(errs...)
}

// conflicts returns an error if flags contradict each other.
func (p *planFlags) conflicts(o flashdb.PredictOptions) error {
	const byHand = "--rounds, --per-round, --probes, --growth, --patience, --tail, --anchors, --anchors-from, --seed and --max-scored"
	switch {
	case o.Plan != nil && o.Exact:
		return errors.New("--mode exact scores every node: leave out " + byHand)
	case o.Plan != nil && o.Recall != 0 && p.mode == "paper":
		return errors.New("--mode paper is a plan of its own: leave out --recall")
	case o.Plan != nil && o.Recall != 0:
		return errors.New("--recall chooses the plan: leave out " + byHand)
	}
	return nil
}

// probesFlag is a pflag.Value: 64, 5% or all.
type probesFlag struct{ probes index.Probes }

func (f *probesFlag) Type() string { return "lists|share%|all" }

func (f *probesFlag) String() string {
	if f.probes == (index.Probes{}) {
		return ""
	}
	return f.probes.String()
}

func (f *probesFlag) Set(s string) error {
	p, err := parseProbes(s)
	if err != nil {
		return err
	}
	f.probes = p
	return nil
}

func parseProbes(s string) (index.Probes, error) {
	if s == "all" {
		return index.Probes{Share: 1}, nil
	}
	if number, ok := strings.CutSuffix(s, "%"); ok {
		percent, err := strconv.ParseFloat(number, 64)
		if err == nil && percent > 0 && percent <= 100 {
			return index.Probes{Share: percent / 100}, nil
		}
	} else if lists, err := strconv.Atoi(s); err == nil && lists > 0 {
		return index.Probes{Lists: lists}, nil
	} else if share, err := strconv.ParseFloat(s, 64); err == nil && share > 0 && share < 1 {
		return index.Probes{Share: share}, nil
	}
	return index.Probes{}, errors.New("want a positive number of lists, a share of it such as 5% or 0.05, or all")
}

// shareFlag is a pflag.Value: a share in (0, 1], as 5% or 0.05.
type shareFlag float64

func (f *shareFlag) Type() string { return "share" }

func (f *shareFlag) String() string {
	if *f == 0 {
		return ""
	}
	return fmt.Sprintf("%g%%", 100*float64(*f))
}

func (f *shareFlag) Set(s string) error {
	v, err := parseShare(s)
	if err == nil && v > 1 {
		return errors.New("want at most 100%")
	}
	*f = shareFlag(v)
	return err
}

// parseShare reads 5% or 0.05. Of more than the whole it wants the sign: 5 may be meant for either.
func parseShare(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || !(v > 0):
		return 0, errors.New("want a share above 0, such as 5% or 0.05")
	case percent:
		v /= 100
	case v > 1:
		return 0, fmt.Errorf("want at most 1, or %s%%", s)
	}
	return v, nil
}
