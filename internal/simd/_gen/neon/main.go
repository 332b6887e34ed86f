// Command neon writes the arm64 assembly kernels of package simd, which avo
// cannot. It is run by go generate in that package; what it writes is committed.
package main

import (
	"flag"
	"log"
	"os"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", "", "the assembly file to write")
	stubs := flag.String("stubs", "", "the file of Go declarations to write")
	flag.Parse()

	a := kernels()
	for name, text := range map[string]string{*out: a.code.String(), *stubs: a.stubs.String()} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

func kernels() *assembly {
	a := newAssembly()
	sums(a)
	dotWide(a)
	dotRows(a)
	elementwise(a)
	atLeast(a)
	prefetch(a)
	mulPanel(a)
	pack(a)
	scan4(a)
	dotBytes(a)
	return a
}
