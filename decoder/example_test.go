package decoder_test

import (
	"fmt"
	"log"
	"os"

	"github.com/flashdb/flashdb/decoder"
)

// A network of two layers on the product of source and candidate.
func ExampleNewHadamardMLP() {
	d, err := decoder.NewHadamardMLP(2,
		decoder.Layer{Weight: []float32{1, 1, 1, -1, 0.5, 0}, Bias: []float32{0, 0, 1}}, // ReLU, 3 neurons
		decoder.Layer{Weight: []float32{1, -1, 2}})                                      // the logit
	if err != nil {
		log.Fatal(err)
	}
	var scratch decoder.Scratch
	bound := d.Bind(nil, []float32{1, 2}) // the source

	candidates := []float32{1, 1, -1, 1, 0, -2} // three rows
	logits := make([]float32, 3)
	bound.Score(&scratch, logits, candidates)
	fmt.Println(d, logits)

	gradient := make([]float32, 2)
	bound.Gradient(&scratch, gradient, candidates[:2], nil) // at the first candidate
	fmt.Println(gradient)
	// Output:
	// hadamard_mlp 2-3-1 [6 2 -2]
	// [2 2]
}

// Weights exported from PyTorch, a spec that says what they are, and scores PyTorch computed.
func ExampleReadFile() {
	const dir = "testdata/decoders/hadamard-layernorm/"
	data, err := os.ReadFile(dir + "spec.json")
	if err != nil {
		log.Fatal(err)
	}
	spec, err := decoder.ParseSpec(data)
	if err != nil {
		log.Fatal(err)
	}
	d, err := decoder.ReadFile(dir+"weights.safetensors", &spec)
	if err != nil {
		log.Fatal(err)
	}
	cases, err := decoder.ReadCases(dir + "cases.jsonl")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(d, decoder.SelfCheck(d, cases, 0))
	// Output: hadamard_mlp 24-40-40-1 <nil>
}

// The layout of OGB's link predictors needs no spec.
func ExampleReadFile_ogb() {
	d, err := decoder.ReadFile("testdata/decoders/hadamard-relu/nested.pt", nil)
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
