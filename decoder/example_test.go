package decoder_test

import (
	"fmt"
	"log"

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
