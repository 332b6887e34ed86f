package weights_test

import (
	"fmt"
	"log"
	"os"

	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
)

// Weights exported from PyTorch, a spec that says what they are, and scores PyTorch computed.
func ExampleRead() {
	const dir = "testdata/decoders/hadamard-layernorm/"
	data, err := os.ReadFile(dir + "spec.json")
	if err != nil {
		log.Fatal(err)
	}
	spec, err := decoder.ParseSpec(data)
	if err != nil {
		log.Fatal(err)
	}
	d, err := weights.Read(dir+"weights.safetensors", &weights.Options{Spec: &spec})
	if err != nil {
		log.Fatal(err)
	}
	cases, err := weights.ReadCases(dir + "cases.jsonl")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d, weights.SelfCheck(d, cases, 0))
	// Output: hadamard_mlp 24-40-40-1 <nil>
}

// The layout of OGB's link predictors needs no spec.
func ExampleRead_ogb() {
	d, err := weights.Read("testdata/decoders/hadamard-relu/nested.pt", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d)
	for _, layer := range d.Spec().Layers {
		fmt.Println(layer.Weight, layer.Activation)
	}
	// Output:
	// hadamard_mlp 24-32-32-1
	// lins.0.weight relu
	// lins.1.weight relu
	// lins.2.weight identity
}
