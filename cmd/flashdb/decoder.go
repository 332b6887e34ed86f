package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/usage"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/decoder/weights"
	"github.com/flashdb/flashdb/internal/codec"
)

func (a *app) decoderCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "decoder",
		Short: "Add, list, show or remove trained decoders",
		Args:  usage.NoCommand,
		RunE:  help,
	}
	cmd.AddCommand(a.decoderAddCommand(), a.decoderListCommand(), a.decoderShowCommand(), a.decoderRemoveCommand())
	return cmd
}

func (a *app) decoderAddCommand() *cobra.Command {
	var flags decoderFlags
	cmd := &cobra.Command{
		Use:   "add DIR COLLECTION NAME FILE [--spec decoder.json | --layout NAME] [--check scores.jsonl]",
		Short: "Store a decoder from .safetensors, .npz, PyTorch .pt or .onnx",
		Long: `Add stores a trained decoder under a name, and replaces an earlier one of that name.
Weights do not say what is computed with them. The spec does: kind, layers in order,
activations, norms. It is not needed for weights in a known layout, which is recognised by its
keys or named with --layout:
` + strings.Join(weights.Layouts(), ", ") + `.
--kind, --activation and --residual say what a layout leaves open.

A checkpoint of a larger model may be given as it is; --prefix model.predictor. names the part
that is the decoder if there could be several. An .onnx file needs no spec. It needs --kind if
its only input is already the product or the concatenation of the embeddings. A dot decoder has
no weights: FILE is then the spec itself.

--check compares the decoder with cases that the training framework computed, one on each line,
{"source": [...], "candidate": [...], "logit": x}. Nothing is stored if a logit differs by more
than 1e-4 relative.

A model of a knowledge graph (DistMult, ComplEx) is one decoder for all relations, of a table
with a row for each. --relations names the rows, one name on each line, or with its number as
PyKEEN and DGL-KE write them; predict --relation then asks for one.

For weights of no known layout the error holds a draft of a spec, made of their names and
shapes; its activations are guesses.`,
		Example: `  flashdb decoder add papers.flash papers cites decoder.safetensors --spec decoder.json --check scores.jsonl
  flashdb decoder add papers.flash papers cites ogb_predictor.pt
  flashdb decoder add papers.flash papers cites checkpoint.pt --prefix model_state_dict.predictor
  flashdb decoder add papers.flash papers cites gae.pt --layout refined-gae --residual z
  flashdb decoder add papers.flash papers cites predictor.onnx --check scores.jsonl
  flashdb decoder add papers.flash papers cites mlp.onnx --kind concat_mlp
  flashdb decoder add kg.flash entities kg model.pt --kind complex --relations relation_to_id.tsv.gz`,
		Args: usage.Args(4, 4),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, checked, err := flags.read(a, cmd, args)
			if err != nil {
				return err
			}
			name := args[2]
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{}, func(_ database, c collection) error {
				if err := c.PutDecoder(cmd.Context(), name, d); err != nil {
					return err
				}
				if a.json {
					return a.emit(newJSONDecoder(name, d, &checked))
				}
				return a.printAdded(name, d, checked)
			})
		},
	}
	flags.add(cmd)
	return cmd
}

// decoderFlags say what a file of weights is.
type decoderFlags struct {
	spec, cases string // files
	opts        weights.Options
}

func (f *decoderFlags) add(cmd *cobra.Command) {
	fs, opts := cmd.Flags(), &f.opts
	fs.StringVar(&f.spec, "spec", "", "`file` that describes the decoder (default: the layout does)")
	fs.StringVar(&opts.Layout, "layout", "", "`name` of the layout of the weights (default: told by their keys)")
	fs.StringVar(&opts.Prefix, "prefix", "", "`prefix` of the decoder's keys in a larger model")
	fs.StringVar((*string)(&opts.Kind), "kind", "", "what a network reads: hadamard_mlp or concat_mlp; of layout pykeen: distmult or complex")
	fs.StringVar((*string)(&opts.Activation), "activation", "", "`name` of the activation between layers (default relu); rails: gelu or silu")
	fs.Float64Var(&opts.Temperature, "temperature", 0, "of layout rails: `number` that the logits of the mixture are divided by")
	fs.StringVar(&opts.Residual, "residual", "", "z, input or none: what is added to each layer but the last")
	fs.Var(relationNames{&opts.Relations}, "relations", "`file` of the names of the decoder's relations, in the order of its table")
	fs.StringVar(&f.cases, "check", "", "`file` of scored cases that the decoder must agree with")
	completeWords(cmd, "layout", weights.Layouts()...)
	completeWords(cmd, "kind", string(decoder.HadamardMLP), string(decoder.ConcatMLP), string(decoder.DistMult), string(decoder.ComplEx))
	completeWords(cmd, "residual", "z", "input", "none")
}

// read reads the decoder, and says how many cases agree with it. The last of args is the file; the
// others are DIR, COLLECTION and NAME.
func (f *decoderFlags) read(a *app, cmd *cobra.Command, args []string) (d decoder.Decoder, checked int, err error) {
	if d, err = readDecoder(args[3], f.spec, f.opts); err != nil {
		if hint := notWeights(args[3]); hint != "" {
			return nil, 0, fmt.Errorf("%w%s", err, hint)
		}
		return nil, 0, a.withDraft(cmd.Context(), args, f.opts.Prefix, err)
	}
	checked, err = checkDecoder(d, f.cases)
	return d, checked, err
}

func (a *app) printAdded(name string, d decoder.Decoder, checked int) error {
	note := ""
	if checked > 0 {
		note = fmt.Sprintf(", %s agree", show.Count(checked, "case"))
	}
	_, err := fmt.Fprintf(a.out, "added decoder %s: %s, %s%s\n", show.Text(name), d, show.Count(parameters(d), "parameter"), note)
	return err
}

// completeWords gives a flag its values in the shell's completion.
func completeWords(cmd *cobra.Command, flag string, words ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic("flashdb: complete a flag that does not exist: " + err.Error())
	}
}

func readDecoder(file, specFile string, opts weights.Options) (decoder.Decoder, error) {
	if specFile == "" {
		return weights.Read(file, &opts)
	}
	const most = 1 << 20 // bytes; a spec of 64 layers has some ten thousand
	b, err := codec.ReadSmall(specFile, most)
	if err != nil {
		return nil, fmt.Errorf("--spec: %w", err)
	}
	spec, err := decoder.ParseSpec(b)
	if err != nil {
		return nil, fmt.Errorf("--spec %s: %w", specFile, err)
	}
	opts.Spec = &spec
	return weights.Read(file, &opts)
}

// checkDecoder returns how many cases agree.
func checkDecoder(d decoder.Decoder, casesFile string) (int, error) {
	if casesFile == "" {
		return 0, nil
	}
	cases, err := weights.ReadCases(casesFile)
	if err != nil {
		return 0, fmt.Errorf("--check: %w", err)
	}
	if err := weights.SelfCheck(d, cases, 0); err != nil {
		err = fmt.Errorf("--check %s: %w", casesFile, err)
		if hint := probabilityHint(d, cases); hint != "" {
			err = fmt.Errorf("%w: %s", err, hint)
		}
		return 0, err
	}
	return len(cases), nil
}

// parameters counts a decoder's weights.
func parameters(d decoder.Decoder) (n int) {
	for _, t := range d.Tensors() {
		n += len(t.Data)
	}
	return n
}

type jsonDecoder struct {
	Name       string       `json:"name"`
	Kind       decoder.Kind `json:"kind"`
	Shape      string       `json:"shape"`
	Dim        int          `json:"dim"`
	Parameters int          `json:"parameters"`
	Checked    *int         `json:"checked,omitempty"` // cases that agreed, of add
}

func newJSONDecoder(name string, d decoder.Decoder, checked *int) jsonDecoder {
	return jsonDecoder{show.JSON(name), d.Kind(), d.String(), d.Dim(), parameters(d), checked}
}

func (a *app) decoderListCommand() *cobra.Command {
	return &cobra.Command{
		Use:        "list DIR COLLECTION",
		SuggestFor: []string{"ls"},
		Short:      "List the decoders of a collection",
		Example:    `  flashdb decoder list papers.flash papers`,
		Args:       usage.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{ReadOnly: true}, func(_ database, c collection) error {
				names, err := c.Decoders(cmd.Context())
				if err != nil {
					return err
				}
				decoders := make([]decoder.Decoder, len(names))
				for i, name := range names {
					if decoders[i], err = c.Decoder(cmd.Context(), name); err != nil {
						return err
					}
				}
				if a.json {
					for i, d := range decoders {
						if err := a.emit(newJSONDecoder(names[i], d, nil)); err != nil {
							return err
						}
					}
					return nil
				}
				return a.titled(func(w io.Writer) {
					fmt.Fprintln(w, "name\tshape\tparameters")
					for i, d := range decoders {
						fmt.Fprintf(w, "%s\t%s\t%s\n", show.Text(names[i]), d, show.Number(parameters(d)))
					}
				})
			})
		},
	}
}

func (a *app) decoderShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "show DIR COLLECTION NAME",
		Short:   "Print a decoder's spec and the shapes of its weights",
		Example: `  flashdb decoder show papers.flash papers cites --json`,
		Args:    usage.Args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{ReadOnly: true}, func(_ database, c collection) error {
				d, err := c.Decoder(cmd.Context(), args[2])
				if err != nil {
					return err
				}
				if a.json {
					return a.emit(struct {
						jsonDecoder
						Spec decoder.Spec `json:"spec"`
					}{newJSONDecoder(args[2], d, nil), d.Spec()})
				}
				return a.showDecoder(args[2], d)
			})
		},
	}
}

func (a *app) showDecoder(name string, d decoder.Decoder) error {
	spec := d.Spec()
	fmt.Fprintf(a.out, "%s: %s, %s\n", show.Text(name), d, show.Count(parameters(d), "parameter"))
	if len(spec.Relations) > 0 {
		fmt.Fprintf(a.out, "  relations: %s\n", shownList(spec.Relations, 20))
	}
	return a.table(0, func(w io.Writer) {
		tensor := func(label, key string) {
			if key != "" {
				fmt.Fprintf(w, "  %s\t%s\t%v\n", label, show.Text(key), d.Tensors()[key].Shape)
			}
		}
		tensor("weight", spec.Weight)
		tensor("relation", spec.Relation)
		tensor("imaginary", spec.Imaginary)
		if spec.InputNorm != nil {
			fmt.Fprintf(w, "  input norm\t%s\t\n", spec.InputNorm.Kind)
		}
		for i, l := range spec.Layers {
			extra := string(l.Activation)
			if l.Norm != nil {
				extra += ", " + l.Norm.Kind
			}
			if l.Residual != "" {
				extra += ", residual of the " + l.Residual
			}
			fmt.Fprintf(w, "  layer %d\t%s\t%v\t%s\n", i+1, show.Text(l.Weight), d.Tensors()[l.Weight].Shape, extra)
		}
		if spec.Output != "" {
			fmt.Fprintf(w, "  output\t%s\t\n", spec.Output)
		}
	})
}

func (a *app) decoderRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:        "remove DIR COLLECTION NAME",
		SuggestFor: []string{"rm", "delete", "drop", "del"},
		Short:      "Remove a decoder",
		Example:    `  flashdb decoder remove papers.flash papers cites`,
		Args:       usage.Args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withCollection(cmd.Context(), args[0], args[1], flashdb.Options{}, func(_ database, c collection) error {
				if err := c.DropDecoder(cmd.Context(), args[2]); err != nil {
					if names, _ := c.Decoders(cmd.Context()); errors.Is(err, flashdb.ErrNotFound) {
						return fmt.Errorf("%w; the collection has %s", err, orNone(shownList(names, 8), "none"))
					}
					return err
				}
				if a.json {
					return a.emit(map[string]string{"done": "remove", "decoder": show.JSON(args[2])})
				}
				_, err := fmt.Fprintf(a.out, "removed decoder %s\n", show.Text(args[2]))
				return err
			})
		},
	}
}
