package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/flashdb/flashdb"
)

// registerChoice adds the flags that say which nodes may be hits, and choose among the best.
func (r *predictRequest) registerChoice(fs *pflag.FlagSet) {
	fs.StringArrayVar(&r.opts.Exclude, "exclude", nil, "`key` to leave out; may be repeated")
	fs.StringVar(&r.opts.Filter, "filter", "", "`expression` of tags and attributes: \"cs.CL and not survey and year >= 2020\"")
	fs.Float64Var(&r.opts.Diversity, "diversity", 0, "0 to 1: how much score to give up for hits whose embeddings differ")
	fs.Var(capFlag{&r.opts.Per}, "per", "at most so many hits of one value of an attribute, `name=most`; tag=2: of one tag")
}

// A capFlag is the value of --per.
type capFlag struct{ to **flashdb.Cap }

// Type implements pflag.Value.
func (capFlag) Type() string { return "name=most" }

// String implements pflag.Value.
func (f capFlag) String() string {
	if f.to == nil || *f.to == nil {
		return ""
	}
	name := (*f.to).Attribute
	if name == "" {
		name = tagCap
	}
	return fmt.Sprintf("%s=%d", name, (*f.to).Most)
}

// tagCap stands for tags in --per.
const tagCap = "tag"

// Set implements pflag.Value.
func (f capFlag) Set(text string) error {
	at := strings.LastIndexByte(text, '=')
	if at < 1 {
		return errors.New("want name=most, such as brand=2, or tag=2 for tags")
	}
	most, err := strconv.Atoi(text[at+1:])
	if err != nil || most < 1 {
		return fmt.Errorf("%q is not how many hits: want name=most, such as brand=2", text[at+1:])
	}
	*f.to = &flashdb.Cap{Attribute: text[:at], Most: most}
	if text[:at] == tagCap {
		(*f.to).Attribute = ""
	}
	return nil
}
