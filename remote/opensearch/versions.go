package opensearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

// acknowledged is the answer to a change of indexes or aliases.
type acknowledged struct {
	Acknowledged bool `json:"acknowledged"`
}

// change sends a change of indexes or aliases.
func (e *Engine) change(ctx context.Context, r *request) error {
	var answer acknowledged
	err := e.client.do(ctx, r, &answer)
	if err == nil && !answer.Acknowledged {
		err = fmt.Errorf("opensearch: %s: %w: not all nodes have taken it up in time", r.what, remote.ErrUnavailable)
	}
	return err
}

// Live implements remote.Engine.
func (e *Engine) Live(ctx context.Context, collection string) (v remote.Version, _ error) {
	name, err := encode(collection)
	if err != nil {
		return v, err
	}
	what := "read the live version of " + livePrefix + name
	docs, err := e.get(ctx, what, livePrefix+name, []string{describing})
	switch {
	case err == nil:
	case !errors.Is(err, flashdb.ErrNotFound):
		return v, err
	case strings.Contains(err.Error(), "["+livePrefix+name+"]"):
		return v, fmt.Errorf("collection %q: %w", collection, err)
	default: // the alias led this node to an index that is dropped: it has not heard of the new one
		return v, fmt.Errorf("opensearch: %s: %w: another version is just being published: %v", what, remote.ErrUnavailable, err)
	}
	foreign := func(format string, args ...any) (remote.Version, error) {
		return remote.Version{}, fmt.Errorf("opensearch: %s: %w: "+format, append([]any{what, remote.ErrForeign}, args...)...)
	}
	if !docs[0].Found {
		return foreign("index %s has no document %q", docs[0].Index, describing)
	}
	if err := json.Unmarshal(docs[0].Source.Version, &v); err != nil {
		return foreign("document %q of index %s does not describe a version", describing, docs[0].Index)
	}
	if version, ok := versionOf(docs[0].Index, name); !ok || version != v.ID {
		return foreign("index %s describes itself as version %q", docs[0].Index, v.ID)
	}
	if v.Decoders == nil {
		v.Decoders = map[string][]byte{}
	}
	return v, nil
}

// aliases are the aliases of indexes.
type aliases map[string]struct {
	Aliases map[string]struct{} `json:"aliases"`
}

// Versions implements remote.Engine.
func (e *Engine) Versions(ctx context.Context, collection string) (names []remote.Name, _ error) {
	name, err := encode(collection)
	if err != nil {
		return nil, err
	}
	var answer aliases
	r := request{what: "list the versions of " + indexPrefix + name, method: http.MethodGet, path: "/" + indexPrefix + name + "-*/_alias"}
	err = e.client.do(ctx, &r, &answer)
	if errors.Is(err, flashdb.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	live := ""
	for index, a := range answer {
		version, ok := versionOf(index, name)
		if !ok {
			continue // of a collection whose name begins with this one
		}
		names = append(names, remote.Name{Collection: collection, Version: version})
		if _, ok := a.Aliases[livePrefix+name]; ok {
			live = version
		}
	}
	slices.SortFunc(names, func(a, b remote.Name) int {
		switch {
		case a.Version == b.Version:
			return 0
		case a.Version == live:
			return -1
		case b.Version == live:
			return 1
		}
		return strings.Compare(a.Version, b.Version)
	})
	return names, nil
}

// Stage implements remote.Engine.
func (e *Engine) Stage(ctx context.Context, collection string, v remote.Version) error {
	n := remote.Name{Collection: collection, Version: v.ID}
	p, err := placeOf(n)
	if err != nil {
		return err
	}
	if v.Dim < 1 || v.Dim+1 > maxDim {
		return fmt.Errorf("opensearch: stage %s: %w: the Lucene engine holds vectors of at most %d dimensions, this needs %d", p.index, flashdb.ErrDim, maxDim, v.Dim+1)
	}
	l, err := e.look(ctx, &p)
	if errors.Is(err, flashdb.ErrNotFound) {
		if err = e.create(ctx, &p, &v); err == nil {
			l, err = e.look(ctx, &p)
		}
	}
	if err != nil {
		return err
	}
	if l.dim != v.Dim+1 {
		return fmt.Errorf("opensearch: stage %s: %w: it is there with %d dimensions, and not %d", p.index, flashdb.ErrDim, l.dim-1, v.Dim)
	}
	body := encoded(map[string][]byte{"version": encoded(v)})
	// Index and document are two calls. One that is interrupted between them is repeated.
	r := request{what: "describe " + p.index, method: http.MethodPut, path: "/" + p.write + "/_doc/" + describing + "?require_alias=true", body: body}
	if err := e.client.do(ctx, &r, nil); err != nil {
		return gone(err, n)
	}
	e.known.Store(n, l)
	return nil
}

// create creates the index of a version. That it exists by now is no error. Until it is published
// it has no replicas, which would build the graph once more, and is not refreshed by itself, which
// would make many small graphs.
func (e *Engine) create(ctx context.Context, p *place, v *remote.Version) error {
	n, _, err := e.size(ctx)
	if err != nil {
		return err
	}
	r := request{what: "create " + p.index, method: http.MethodPut, path: "/" + p.index, body: encoded(map[string]any{
		"settings": map[string]any{"index": map[string]any{
			"knn": true, "number_of_shards": n, "number_of_replicas": 0, "refresh_interval": "-1", "max_result_window": maxWindow,
		}},
		"aliases":  map[string]any{p.write: map[string]any{}},
		"mappings": newMapping(v, &e.config),
	})}
	err = e.change(ctx, &r)
	if err != nil && strings.Contains(err.Error(), "resource_already_exists_exception") {
		return nil
	}
	return err
}

// size returns how many shards and replicas a new index gets.
func (e *Engine) size(ctx context.Context) (n, replicas int, _ error) {
	n, replicas = e.config.Shards, max(0, e.config.Replicas)
	if n > 0 && e.config.Replicas != 0 {
		return n, replicas, nil
	}
	var health struct {
		DataNodes int `json:"number_of_data_nodes"`
	}
	if err := e.client.do(ctx, &request{what: "count data nodes", method: http.MethodGet, path: "/_cluster/health"}, &health); err != nil {
		return 0, 0, err
	}
	if n == 0 {
		n = max(1, health.DataNodes)
	}
	if e.config.Replicas == 0 && health.DataNodes > 1 {
		replicas = 1
	}
	return n, replicas, nil
}

// Publish implements remote.Engine. All aliases change by one update of the cluster's state. The
// former versions are dropped once every node has taken it up: a node that had not would still call
// one of them live that is gone elsewhere. Meanwhile an alias tells that they are to be dropped,
// for a Publish that is repeated.
func (e *Engine) Publish(ctx context.Context, versions ...remote.Name) error {
	var actions []any
	act := func(action, index, alias string) {
		actions = append(actions, map[string]any{action: map[string]string{"index": index, "alias": alias}})
	}
	for _, n := range versions {
		p, err := placeOf(n)
		if err != nil {
			return err
		}
		if _, err := e.look(ctx, &p); err != nil {
			return e.forget(n, err)
		}
		if err := e.complete(ctx, n, &p); err != nil {
			return err
		}
		live, err := e.leadsTo(ctx, p.live)
		if err != nil {
			return err
		}
		for _, was := range live {
			if was == p.index {
				continue
			}
			if _, ok := versionOf(was, p.collection); !ok {
				return fmt.Errorf("opensearch: publish %s: %w: the alias %s leads to index %s", p.index, remote.ErrForeign, p.live, was)
			}
			act("remove", was, p.live)
			act("add", was, p.former)
		}
		if !slices.Contains(live, p.index) {
			act("add", p.index, p.live)
		}
	}
	if len(actions) > 0 {
		r := request{what: "publish", method: http.MethodPost, path: "/_aliases", body: encoded(map[string]any{"actions": actions})}
		if err := e.change(ctx, &r); err != nil {
			return err
		}
	}
	for _, n := range versions {
		if err := e.dropFormer(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// complete makes what create left out: replicas, and a refresh from time to time. The flush writes
// all rows to files, so that a replica is a copy of files: what is in the transaction log alone
// would be indexed once more. It returns once every copy is there. A copy that no node takes is not
// waited for.
func (e *Engine) complete(ctx context.Context, n remote.Name, p *place) error {
	if err := e.Refresh(ctx, n); err != nil {
		return err
	}
	if err := e.everyShard(ctx, "flush", p); err != nil {
		return e.forget(n, err)
	}
	_, replicas, err := e.size(ctx)
	if err != nil {
		return err
	}
	r := request{what: "complete " + p.index, method: http.MethodPut, path: "/" + p.index + "/_settings", body: encoded(map[string]any{
		"index": map[string]any{"number_of_replicas": replicas, "refresh_interval": nil},
	})}
	if err := e.change(ctx, &r); err != nil {
		return e.forget(n, err)
	}
	const idle = 3 // seconds without a copy in progress, after which none is expected
	for waited := 0; ; waited++ {
		var health struct {
			Status       string `json:"status"`
			Initializing int    `json:"initializing_shards"`
		}
		r := request{what: "wait for copies of " + p.index, method: http.MethodGet, path: "/_cluster/health/" + p.index}
		if err := e.client.do(ctx, &r, &health); err != nil {
			return err
		}
		if health.Initializing > 0 {
			waited = 0
		}
		if health.Status == "green" || waited == idle {
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// dropFormer drops the versions that were live before n.
func (e *Engine) dropFormer(ctx context.Context, n remote.Name) error {
	p, err := placeOf(n)
	if err != nil {
		return err
	}
	former, err := e.leadsTo(ctx, p.former)
	if err != nil {
		return err
	}
	for _, was := range former {
		version, ok := versionOf(was, p.collection)
		if !ok || version == n.Version {
			continue
		}
		if err := e.Drop(ctx, remote.Name{Collection: n.Collection, Version: version}); err != nil {
			return err
		}
	}
	return nil
}

// leadsTo returns the indexes that an alias leads to.
func (e *Engine) leadsTo(ctx context.Context, alias string) (indexes []string, _ error) {
	var answer aliases
	r := request{what: "read alias " + alias, method: http.MethodGet, path: "/_alias/" + alias}
	err := e.client.do(ctx, &r, &answer)
	if isMissingAlias(err) {
		return nil, nil
	}
	for index := range answer {
		indexes = append(indexes, index)
	}
	return indexes, err
}

// isMissingAlias tells the answer to a question for an alias that is not there. It has no type.
func isMissingAlias(err error) bool {
	return errors.Is(err, flashdb.ErrNotFound) || err != nil && strings.Contains(err.Error(), "] missing")
}

// Drop implements remote.Engine. It leaves an index alone that is not ours.
func (e *Engine) Drop(ctx context.Context, of remote.Name) error {
	p, err := placeOf(of)
	if err != nil {
		return err
	}
	if _, err = e.look(ctx, &p); err == nil {
		err = e.change(ctx, &request{what: "drop " + p.index, method: http.MethodDelete, path: "/" + p.index})
	}
	e.known.Delete(of)
	if errors.Is(err, flashdb.ErrNotFound) {
		return nil
	}
	return err
}

// Refresh implements remote.Engine.
func (e *Engine) Refresh(ctx context.Context, of remote.Name) error {
	p, _, err := e.find(ctx, of)
	if err != nil {
		return err
	}
	return e.forget(of, e.everyShard(ctx, "refresh", &p))
}

// everyShard runs a command on every shard of an index.
func (e *Engine) everyShard(ctx context.Context, command string, p *place) error {
	var answer struct {
		Shards shards `json:"_shards"`
	}
	what := command + " " + p.index
	if err := e.client.do(ctx, &request{what: what, method: http.MethodPost, path: "/" + p.index + "/_" + command}, &answer); err != nil {
		return err
	}
	return answer.Shards.whole(what)
}
