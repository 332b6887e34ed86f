// Command _gen writes the assembly kernels of package simd. It is run by go
// generate in that package, once for each kernel class; what it writes is
// committed, so building flashdb needs neither this module nor avo.
package main

import (
	"flag"
	"log"

	. "github.com/mmcloughlin/avo/build"
)

func main() {
	log.SetFlags(0)
	emit := map[string]func(){
		"avx2":     kernels(avx2),
		"avx512":   kernels(avx512),
		"roofline": roofline,
	}
	what := flag.String("emit", "", "what to write: avx2, avx512 or roofline")
	flag.Parse()
	if emit[*what] == nil {
		log.Fatalf("-emit %q: want avx2, avx512 or roofline", *what)
	}
	ConstraintExpr("!noasm")
	emit[*what]()
	Generate()
}

func kernels(c class) func() {
	return func() {
		c.sums()
		c.dotWide()
		c.dotRows()
		c.elementwise()
		c.atLeast()
		c.mulPanel()
		c.scan4()
		if c == avx512 {
			vbmi.scan4()
			vnni.dotBytes()
		}
		if c == avx2 {
			c.prefetch()
			c.pack()
			c.dotBytes()
		}
	}
}
