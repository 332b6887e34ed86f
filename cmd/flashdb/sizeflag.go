package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
)

// sizeFlag is a pflag.Value: a number of bytes, as 500MB or 4GB.
type sizeFlag int64

func (f *sizeFlag) Type() string { return "size" }

func (f *sizeFlag) String() string {
	if *f == 0 {
		return ""
	}
	return show.Bytes(int64(*f))
}

var sizeUnits = []struct {
	name  string
	bytes float64
}{{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40}, {"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"t", 1e12}, {"b", 1}}

func (f *sizeFlag) Set(s string) error {
	text, unit := strings.ToLower(strings.TrimSpace(s)), 1.0
	for _, u := range sizeUnits {
		if number, ok := strings.CutSuffix(text, u.name); ok {
			text, unit = strings.TrimSpace(number), u.bytes
			break
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0) || v*unit > 1<<60 {
		return errors.New("want a number of bytes, such as 500MB or 4GB")
	}
	if v*unit < 1e6 {
		return errors.New("want at least 1 MB, such as 500MB or 4GB")
	}
	*f = sizeFlag(v * unit)
	return nil
}

// register adds the flag that sets Options.MemoryBytes.
func (f *sizeFlag) register(fs *pflag.FlagSet) {
	fs.Var(f, "memory", "memory that a rebuild may hold, such as 500MB (default what it takes)")
}

// budgetFor refuses the flag where another has opened the database, whose budget holds.
func (a *app) budgetFor(db database, memory sizeFlag) error {
	if memory != 0 && (a.shared != nil || db.DB() == nil) {
		return errors.New("--memory is for who opens the database, and it is open: give it to `flashdb serve`, or set Options.MemoryBytes in the program")
	}
	return nil
}

// freeShare is how much of the memory that is free one command may take.
const freeShare = 0.8

// orFree is the size, or most of the memory that is free; 0 where neither is known.
func (f sizeFlag) orFree() int64 {
	if f > 0 {
		return int64(f)
	}
	meminfo, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0 // not on Linux
	}
	return int64(freeShare * float64(availableIn(meminfo)))
}

// availableIn reads MemAvailable, in bytes; 0 where it is not there.
func availableIn(meminfo []byte) int64 {
	for lines := bufio.NewScanner(bytes.NewReader(meminfo)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 3 && fields[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err == nil {
				return kib << 10
			}
		}
	}
	return 0
}
