// Package pairwise recognises models whose score looks at the structure around the pair. There is
// no function of two embeddings to bind, so they cannot be served. They are recognised so that the
// refusal can say why.
package pairwise

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flashdb/flashdb/decoder/internal/fault"
)

// methods are the names such models go by in a spec's kind, in lower case without punctuation, and
// the method each belongs to.
var methods = map[string]string{
	"seal": "SEAL", "dgcnn": "SEAL",
	"ncn": "NCN", "ncnc": "NCN", "cnlinkpredictor": "NCN", "neuralcommonneighbor": "NCN",
	"buddy": "BUDDY", "elph": "BUDDY",
	"surel": "SUREL", "surel+": "SUREL",
	"neognn": "Neo-GNN",
}

// telltales are module names that, all together, give such a model away in a state dict.
var telltales = []struct {
	method  string
	modules []string
}{
	{"SEAL", []string{"z_embedding"}}, // labels of a node's distances to the pair
	{"NCN", []string{"xcnlin"}},       // embedding of the common neighbours
	{"NCN", []string{"xijlin"}},
	{"BUDDY", []string{"label_lin_layer"}}, // counts estimated by subgraph sketches
	{"SUREL", []string{"trainable_embedding", "affinity_score"}},
	{"Neo-GNN", []string{"f_edge", "g_phi"}},
}

// Method returns the method a spec's kind means, or "".
func Method(kind string) string {
	name := strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(kind))
	return methods[name]
}

// Find returns the method that gives itself away beside or above the tensor called member, and the
// key that does; "" if there is none. Telltales elsewhere belong to another model in the same file.
// An empty member stands for any.
func Find[T any](tensors map[string]T, member string) (method, key string) {
	found := telltaleModules(tensors)
	for _, path := range slices.Sorted(maps.Keys(found)) {
		cut := strings.LastIndexByte(path, '.') + 1
		parent, module := path[:cut], path[cut:]
		if member != "" && !strings.HasPrefix(member, parent) {
			continue
		}
		for _, t := range telltales {
			missing := func(m string) bool { return found[parent+m] == "" }
			if t.modules[0] == module && !slices.ContainsFunc(t.modules, missing) {
				return t.method, found[path]
			}
		}
	}
	return "", ""
}

// telltaleModules returns the paths of the outermost modules with the name of a telltale, each with
// a key that lies there.
func telltaleModules[T any](tensors map[string]T) map[string]string {
	names := map[string]bool{}
	for _, t := range telltales {
		for _, m := range t.modules {
			names[m] = true
		}
	}
	found := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(tensors)) {
		end := 0
		for module := range strings.SplitSeq(key, ".") {
			end += len(module)
			if path := key[:end]; names[module] {
				if _, ok := found[path]; !ok {
					found[path] = key
				}
				break
			}
			end++ // the dot
		}
	}
	return found
}

// Reason says why a pair-structure model is refused.
func Reason(method string) string {
	return fmt.Sprintf("%s is not supported: its score needs the common neighbourhood of the pair, not two embeddings alone; "+
		"train a hadamard_mlp decoder on the same embeddings instead", method)
}

// Error refuses weights that a key gives away.
func Error(method, key string) error {
	return fmt.Errorf("key %s is of a %s model: %s", fault.Quote(key), method, Reason(method))
}
