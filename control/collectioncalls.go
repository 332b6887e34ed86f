package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/decoder"
	"github.com/flashdb/flashdb/internal/wire"
)

// A node is a flashdb.Node as it is sent.
type node struct {
	Key       string      `json:"key"`
	Embedding wire.Vector `json:"embedding"`
	Tags      []string    `json:"tags,omitempty"`
	Payload   []byte      `json:"payload,omitempty"`

	Attributes flashdb.Attributes `json:"attributes,omitempty"`
}

func (n node) node() flashdb.Node {
	return flashdb.Node{Key: n.Key, Embedding: n.Embedding, Tags: n.Tags, Payload: n.Payload, Attributes: n.Attributes}
}

func sent(n flashdb.Node) node { return node{n.Key, n.Embedding, n.Tags, n.Payload, n.Attributes} }

type nodes struct {
	Nodes []node `json:"nodes"`
}

type key struct {
	Key string `json:"key"`
}

type keys struct {
	Keys []string `json:"keys"`
}

type edges struct {
	Edges []flashdb.Edge `json:"edges"`
}

var upsert = onCollection("upsert", func(ctx context.Context, c *flashdb.Collection, r nodes, _ out) (none, error) {
	all := make([]flashdb.Node, len(r.Nodes))
	for i, n := range r.Nodes {
		all[i] = n.node()
	}
	return none{}, c.Upsert(ctx, all...)
})

// Upsert is that of flashdb.Collection.
func (c *Collection) Upsert(ctx context.Context, all ...flashdb.Node) error {
	r := nodes{make([]node, len(all))}
	for i, n := range all {
		r.Nodes[i] = sent(n)
	}
	_, err := upsert.ask(ctx, c, r, out{})
	return err
}

var get = onCollection("get", func(ctx context.Context, c *flashdb.Collection, r key, _ out) (node, error) {
	n, err := c.Get(ctx, r.Key)
	return sent(n), err
})

// Get is that of flashdb.Collection.
func (c *Collection) Get(ctx context.Context, name string) (flashdb.Node, error) {
	n, err := get.ask(ctx, c, key{name}, out{})
	return n.node(), err
}

var deleteNodes = onCollection("delete", func(ctx context.Context, c *flashdb.Collection, r keys, _ out) (int, error) {
	return c.Delete(ctx, r.Keys...)
})

// Delete is that of flashdb.Collection.
func (c *Collection) Delete(ctx context.Context, names ...string) (deleted int, err error) {
	return deleteNodes.ask(ctx, c, keys{names}, out{})
}

type tagged struct {
	Key  string   `json:"key"`
	Tags []string `json:"tags"`
}

var setTags = onCollection("settags", func(ctx context.Context, c *flashdb.Collection, r tagged, _ out) (none, error) {
	return none{}, c.SetTags(ctx, r.Key, r.Tags)
})

// SetTags is that of flashdb.Collection.
func (c *Collection) SetTags(ctx context.Context, name string, tags []string) error {
	_, err := setTags.ask(ctx, c, tagged{name, tags}, out{})
	return err
}

type attributed struct {
	Key        string             `json:"key"`
	Attributes flashdb.Attributes `json:"attributes"`
}

var setAttributes = onCollection("setattributes", func(ctx context.Context, c *flashdb.Collection, r attributed, _ out) (none, error) {
	return none{}, c.SetAttributes(ctx, r.Key, r.Attributes)
})

// SetAttributes is that of flashdb.Collection.
func (c *Collection) SetAttributes(ctx context.Context, name string, attributes flashdb.Attributes) error {
	_, err := setAttributes.ask(ctx, c, attributed{name, attributes}, out{})
	return err
}

type loaded struct {
	Key     string `json:"key"`
	Payload []byte `json:"payload"`
}

var setPayload = onCollection("setpayload", func(ctx context.Context, c *flashdb.Collection, r loaded, _ out) (none, error) {
	return none{}, c.SetPayload(ctx, r.Key, r.Payload)
})

// SetPayload is that of flashdb.Collection.
func (c *Collection) SetPayload(ctx context.Context, name string, payload []byte) error {
	_, err := setPayload.ask(ctx, c, loaded{name, payload}, out{})
	return err
}

var link = onCollection("link", func(ctx context.Context, c *flashdb.Collection, r edges, _ out) (none, error) {
	return none{}, c.Link(ctx, r.Edges...)
})

// Link is that of flashdb.Collection.
func (c *Collection) Link(ctx context.Context, all ...flashdb.Edge) error {
	_, err := link.ask(ctx, c, edges{all}, out{})
	return err
}

var unlink = onCollection("unlink", func(ctx context.Context, c *flashdb.Collection, r edges, _ out) (int, error) {
	return c.Unlink(ctx, r.Edges...)
})

// Unlink is that of flashdb.Collection.
func (c *Collection) Unlink(ctx context.Context, all ...flashdb.Edge) (forgotten int, err error) {
	return unlink.ask(ctx, c, edges{all}, out{})
}

var linked = onCollection("linked", func(ctx context.Context, c *flashdb.Collection, r flashdb.Edge, _ out) ([]string, error) {
	return c.Linked(ctx, r)
})

// Linked is that of flashdb.Collection.
func (c *Collection) Linked(ctx context.Context, of flashdb.Edge) ([]string, error) {
	return linked.ask(ctx, c, of, out{})
}

// linksPage is how many links are sent in one line.
const linksPage = 1024

var links = onCollection("links", func(ctx context.Context, c *flashdb.Collection, _ none, o reply[edges]) (none, error) {
	var page edges
	for e, err := range c.Links(ctx) {
		if err != nil {
			return none{}, err
		}
		if page.Edges = append(page.Edges, e); len(page.Edges) == linksPage {
			if err := o.item(page); err != nil {
				return none{}, err
			}
			page.Edges = page.Edges[:0]
		}
	}
	return none{}, o.item(page)
})

// Links is that of flashdb.Collection. Links are sent up to 1024 at a time.
func (c *Collection) Links(ctx context.Context) iter.Seq2[flashdb.Edge, error] {
	return func(yield func(flashdb.Edge, error) bool) {
		_, err := links.ask(ctx, c, none{}, reply[edges]{item: func(page edges) error {
			for _, e := range page.Edges {
				if !yield(e, nil) {
					return errEnough
				}
			}
			return nil
		}})
		if err != nil && !errors.Is(err, errEnough) {
			yield(flashdb.Edge{}, err)
		}
	}
}

type rows struct {
	From  uint32 `json:"from"`
	Count int    `json:"count"`
}

var rowKeys = onCollection("rowkeys", func(ctx context.Context, c *flashdb.Collection, r rows, _ out) ([]string, error) {
	return c.RowKeys(ctx, r.From, r.Count)
})

// RowKeys is that of flashdb.Collection.
func (c *Collection) RowKeys(ctx context.Context, from uint32, n int) ([]string, error) {
	return rowKeys.ask(ctx, c, rows{from, n}, out{})
}

// keysPage is how many keys one call asks for.
const keysPage = 4096

// Keys is that of flashdb.Collection. One call returns up to 4096 keys, and no call is running
// while they are yielded.
func (c *Collection) Keys(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for from := uint32(0); ; from += keysPage {
			page, err := c.RowKeys(ctx, from, keysPage)
			if err != nil {
				yield("", err)
				return
			}
			for _, name := range page {
				if name != "" && !yield(name, nil) {
					return
				}
			}
			if len(page) < keysPage {
				return
			}
		}
	}
}

type prefix struct {
	Prefix string `json:"prefix"`
	Limit  int    `json:"limit"`
}

var keysWithPrefix = onCollection("keyswithprefix", func(ctx context.Context, c *flashdb.Collection, r prefix, _ out) ([]string, error) {
	return c.KeysWithPrefix(ctx, r.Prefix, r.Limit)
})

// KeysWithPrefix is that of flashdb.Collection.
func (c *Collection) KeysWithPrefix(ctx context.Context, begin string, limit int) ([]string, error) {
	return keysWithPrefix.ask(ctx, c, prefix{begin, limit}, out{})
}

type note struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

var meta = onCollection("meta", func(ctx context.Context, c *flashdb.Collection, r named, _ out) (string, error) {
	value, _, err := c.Meta(ctx, r.Name)
	return value, err
})

// Meta is that of flashdb.Collection. It returns "" for a name without a value.
func (c *Collection) Meta(ctx context.Context, name string) (value string, err error) {
	return meta.ask(ctx, c, named{name}, out{})
}

var setMeta = onCollection("setmeta", func(ctx context.Context, c *flashdb.Collection, r note, _ out) (none, error) {
	return none{}, c.SetMeta(ctx, r.Name, r.Value)
})

// SetMeta is that of flashdb.Collection.
func (c *Collection) SetMeta(ctx context.Context, name, value string) error {
	_, err := setMeta.ask(ctx, c, note{name, value}, out{})
	return err
}

// weights is a decoder that is sent as the bytes of decoder.Marshal.
type weights struct{ decoder.Decoder }

// MarshalJSON implements json.Marshaler.
func (w weights) MarshalJSON() ([]byte, error) { return json.Marshal(decoder.Marshal(w.Decoder)) }

// UnmarshalJSON implements json.Unmarshaler.
func (w *weights) UnmarshalJSON(b []byte) error {
	var blob []byte
	err := json.Unmarshal(b, &blob)
	if err == nil {
		w.Decoder, err = decoder.Unmarshal(blob)
	}
	return err
}

var decoders = onCollection("decoders", func(ctx context.Context, c *flashdb.Collection, _ none, _ out) ([]string, error) {
	return c.Decoders(ctx)
})

// Decoders is that of flashdb.Collection.
func (c *Collection) Decoders(ctx context.Context) ([]string, error) {
	return decoders.ask(ctx, c, none{}, out{})
}

var oneDecoder = onCollection("decoder", func(_ context.Context, c *flashdb.Collection, r named, _ out) (weights, error) {
	d, err := c.Decoder(r.Name)
	return weights{d}, err
})

// Decoder is that of flashdb.Collection.
func (c *Collection) Decoder(ctx context.Context, name string) (decoder.Decoder, error) {
	w, err := oneDecoder.ask(ctx, c, named{name}, out{})
	return w.Decoder, err
}

type trained struct {
	Name    string  `json:"name"`
	Decoder weights `json:"decoder"`
}

var putDecoder = onCollection("putdecoder", func(ctx context.Context, c *flashdb.Collection, r trained, _ out) (none, error) {
	if r.Decoder.Decoder == nil {
		return none{}, fmt.Errorf("%w: put decoder %q: there are no weights", flashdb.ErrInvalid, r.Name)
	}
	return none{}, c.PutDecoder(ctx, r.Name, r.Decoder.Decoder)
})

// PutDecoder is that of flashdb.Collection.
func (c *Collection) PutDecoder(ctx context.Context, name string, d decoder.Decoder) error {
	_, err := putDecoder.ask(ctx, c, trained{name, weights{d}}, out{})
	return err
}

var dropDecoder = onCollection("dropdecoder", func(ctx context.Context, c *flashdb.Collection, r named, _ out) (none, error) {
	return none{}, c.DropDecoder(ctx, r.Name)
})

// DropDecoder is that of flashdb.Collection.
func (c *Collection) DropDecoder(ctx context.Context, name string) error {
	_, err := dropDecoder.ask(ctx, c, named{name}, out{})
	return err
}

type newNode struct {
	Links    flashdb.EmbedLinks `json:"links"`
	Features wire.Vector        `json:"features"`
}

var embed = onCollection("embed", func(ctx context.Context, c *flashdb.Collection, r newNode, _ out) (wire.Vector, error) {
	return c.Embed(ctx, r.Links, r.Features)
})

// Embed is that of flashdb.Collection.
func (c *Collection) Embed(ctx context.Context, links flashdb.EmbedLinks, features []float32) ([]float32, error) {
	return embed.ask(ctx, c, newNode{links, features}, out{})
}

var encoderUse = onCollection("encoderuse", func(ctx context.Context, c *flashdb.Collection, _ none, _ out) (flashdb.EncoderUse, error) {
	_, use, err := c.Encoder(ctx)
	return use, err
})

// EncoderUse returns what the stored encoder is for: see Encoder of flashdb.Collection.
func (c *Collection) EncoderUse(ctx context.Context) (flashdb.EncoderUse, error) {
	return encoderUse.ask(ctx, c, none{}, out{})
}
