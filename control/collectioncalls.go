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

// A node is a flashdb.Node as it travels.
type node struct {
	Key       string      `json:"key"`
	Embedding wire.Vector `json:"embedding"`
	Tags      []string    `json:"tags,omitempty"`
	Payload   []byte      `json:"payload,omitempty"`
}

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
		all[i] = flashdb.Node{Key: n.Key, Embedding: n.Embedding, Tags: n.Tags, Payload: n.Payload}
	}
	return none{}, c.Upsert(ctx, all...)
})

// Upsert is that of flashdb.Collection.
func (c *Collection) Upsert(ctx context.Context, all ...flashdb.Node) error {
	r := nodes{make([]node, len(all))}
	for i, n := range all {
		r.Nodes[i] = node{n.Key, n.Embedding, n.Tags, n.Payload}
	}
	_, err := upsert.ask(ctx, c, r, out{})
	return err
}

var get = onCollection("get", func(ctx context.Context, c *flashdb.Collection, r key, _ out) (node, error) {
	n, err := c.Get(ctx, r.Key)
	return node{n.Key, n.Embedding, n.Tags, n.Payload}, err
})

// Get is that of flashdb.Collection.
func (c *Collection) Get(ctx context.Context, name string) (flashdb.Node, error) {
	n, err := get.ask(ctx, c, key{name}, out{})
	return flashdb.Node{Key: n.Key, Embedding: n.Embedding, Tags: n.Tags, Payload: n.Payload}, err
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

type linksOf struct {
	Source  string                 `json:"source"`
	Options *flashdb.LinkedOptions `json:"options,omitempty"`
}

var linked = onCollection("linked", func(ctx context.Context, c *flashdb.Collection, r linksOf, _ out) ([]string, error) {
	return c.Linked(ctx, r.Source, r.Options)
})

// Linked is that of flashdb.Collection.
func (c *Collection) Linked(ctx context.Context, source string, opts *flashdb.LinkedOptions) ([]string, error) {
	return linked.ask(ctx, c, linksOf{source, opts}, out{})
}

// linksPage is how many links travel in one line.
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

// Links is that of flashdb.Collection. The links come some hundreds at a time.
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

// keysPage is how many keys travel in one line.
const keysPage = 4096

// A page pairs ids with keys, IDs[i] with Keys[i].
type page struct {
	IDs  []uint32 `json:"ids"`
	Keys []string `json:"keys"`
}

var allKeys = onCollection("keys", func(ctx context.Context, c *flashdb.Collection, _ none, o reply[page]) (none, error) {
	var p page
	send := func() error {
		if len(p.IDs) == 0 {
			return nil
		}
		err := o.item(p)
		p.IDs, p.Keys = p.IDs[:0], p.Keys[:0]
		return err
	}
	err := c.Keys(ctx, func(id uint32, key string) error {
		p.IDs, p.Keys = append(p.IDs, id), append(p.Keys, key)
		if len(p.IDs) < keysPage {
			return nil
		}
		return send()
	})
	if err != nil {
		return none{}, err
	}
	return none{}, send()
})

// Keys is that of flashdb.Collection. The keys come some thousands at a time.
func (c *Collection) Keys(ctx context.Context, fn func(id uint32, key string) error) error {
	_, err := allKeys.ask(ctx, c, none{}, reply[page]{item: func(p page) error {
		if len(p.IDs) != len(p.Keys) {
			return fmt.Errorf("the owner sent %d ids and %d keys", len(p.IDs), len(p.Keys))
		}
		for i, id := range p.IDs {
			if err := fn(id, p.Keys[i]); err != nil {
				return err
			}
		}
		return nil
	}})
	return err
}

type ids struct {
	IDs []uint32 `json:"ids"`
}

var keysOf = onCollection("keysof", func(ctx context.Context, c *flashdb.Collection, r ids, _ out) (map[uint32]string, error) {
	found := make(map[uint32]string, len(r.IDs))
	for _, id := range r.IDs {
		name, err := c.Key(ctx, id)
		if errors.Is(err, flashdb.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[id] = name
	}
	return found, nil
})

// KeysOf returns the keys of those of the ids that have a node: it is Key of flashdb.Collection for
// many.
func (c *Collection) KeysOf(ctx context.Context, of []uint32) (map[uint32]string, error) {
	return keysOf.ask(ctx, c, ids{of}, out{})
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

// Meta is that of flashdb.Collection; what is not there is empty.
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

// weights are a decoder that travels as the bytes of decoder.Marshal.
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
