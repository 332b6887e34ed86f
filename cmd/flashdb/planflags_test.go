package main

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/flashlight"
	"github.com/flashdb/flashdb/index"
)

func parsePlan(args ...string) (flashdb.PredictOptions, error) {
	var p planFlags
	cmd := &cobra.Command{Use: "test"}
	p.register(cmd)
	fs := cmd.Flags()
	if err := fs.Parse(args); err != nil {
		return flashdb.PredictOptions{}, err
	}
	return p.options(fs)
}

func TestPlanFlags(t *testing.T) {
	o, err := parsePlan()
	require.NoError(t, err)
	assert.Equal(t, flashdb.PredictOptions{}, o)

	o, err = parsePlan("--decoder", "d", "--rounds", "4", "--per-round", "150", "--probes", "12%", "--growth", "2",
		"--anchors", "5", "--anchors-from", "all", "--seed", "both", "--max-scored", "900")
	require.NoError(t, err)
	assert.Equal(t, flashdb.PredictOptions{
		Decoder: "d",
		Plan: &flashlight.Plan{
			Rounds: 4, PerRound: 150, Probes: index.Probes{Share: .12}, Growth: 2,
			Anchors: 5, AnchorsFrom: flashlight.AnchorsAll, Seed: flashlight.SeedBoth, MaxScored: 900,
		},
	}, o)

	for flag, want := range map[string]int{"3": 3, "-1": patientRounds} {
		o, err = parsePlan("--patience", flag)
		require.NoError(t, err)
		assert.Equal(t, &flashlight.Plan{Patience: want}, o.Plan)
	}

	o, err = parsePlan("--mode", "paper", "--probes", "all")
	require.NoError(t, err)
	assert.Equal(t, flashdb.PredictOptions{Plan: &flashlight.Plan{Method: flashlight.MethodPaper, Probes: index.Probes{Share: 1}}}, o)
}

func TestPlanFlagFaults(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--rounds", "0"}, "--rounds is 0: want a positive number"},
		{[]string{"--rounds", "0", "--anchors", "-1"}, "--anchors is -1"},
		{[]string{"--per-round", "-1"}, "--per-round is -1"},
		{[]string{"--patience", "0"}, "--patience is 0: want a positive number, or -1"},
		{[]string{"--patience", "-2"}, "--patience is -2: want a positive number, or -1"},
		{[]string{"--growth", "0"}, "--growth is 0: want a positive number"},
		{[]string{"--max-scored", "0"}, "--max-scored is 0"},
		{[]string{"--recall", "0"}, "argument \"0\" for \"--recall\" flag: want a share above 0"},
		{[]string{"--recall", "1.5"}, "argument \"1.5\" for \"--recall\" flag: want at most 1, or 1.5%"},
		{[]string{"--recall", "150%"}, "argument \"150%\" for \"--recall\" flag: want at most 100%"},
		{[]string{"--recall", "NaN"}, "argument \"NaN\" for \"--recall\" flag: want a share above 0"},
		{[]string{"--mode", "fast"}, `--mode "fast": use auto, paper, exact`},
		{[]string{"--seed", "one"}, `--seed "one": use ones, source, both, learned, learned+ones, components`},
		{[]string{"--anchors-from", ""}, `--anchors-from "": use round, all, both`},
		{[]string{"--mode", "exact", "--rounds", "3"}, "--mode exact scores every node: leave out --rounds"},
		{[]string{"--mode", "paper", "--growth", "1"}, "method paper fixes everything but the probes"},
		{[]string{"--mode", "paper", "--recall", "0.9"}, "--mode paper is a plan of its own"},
		{[]string{"--recall", "0.9", "--growth", "1"}, "--recall chooses the plan: leave out"},
	} {
		_, err := parsePlan(c.args...)
		require.Error(t, err, c.args)
		assert.Contains(t, err.Error(), c.want)
	}
}

func TestParseProbes(t *testing.T) {
	for text, want := range map[string]index.Probes{
		"1":    {Lists: 1},
		"640":  {Lists: 640},
		"5%":   {Share: .05},
		"0.05": {Share: .05},
		"0.5%": {Share: .005},
		"100%": {Share: 1},
		"all":  {Share: 1},
	} {
		p, err := parseProbes(text)
		require.NoError(t, err, text)
		assert.InDelta(t, want.Share, p.Share, 1e-12)
		assert.Equal(t, want.Lists, p.Lists)
	}
	for _, text := range []string{"", "0", "-3", "0%", "-5%", "101%", "NaN%", "Inf%", "some", "%", "5 %", "All"} {
		_, err := parseProbes(text)
		assert.Error(t, err, text)
	}
}

func TestParseShare(t *testing.T) {
	for text, want := range map[string]float64{"5%": .05, "0.05": .05, "1": 1, "150%": 1.5} {
		v, err := parseShare(text)
		require.NoError(t, err, text)
		assert.InDelta(t, want, v, 1e-12, text)
	}
	for text, want := range map[string]string{
		"5": "want at most 1, or 5%", "0": "want a share above 0", "-3%": "want a share above 0", "x": "want a share above 0", "NaN%": "want a share above 0",
	} {
		_, err := parseShare(text)
		require.ErrorContains(t, err, want, text)
	}
}
