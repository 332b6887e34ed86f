package storage

import (
	"bytes"
	"slices"
	"strings"
)

// KeysWithPrefix returns at most limit keys of live nodes that begin with prefix, sorted: the first
// there are.
func (r *reader) KeysWithPrefix(uid uint32, prefix string, limit int) []string {
	if r.catalog.byUID[uid] == nil || limit <= 0 {
		return nil
	}
	newer := map[string]bool{} // what the layers say of keys: live or deleted
	for _, l := range r.layers {
		for _, run := range l.runs {
			for i := range run.len() {
				if key := run.key(i); run.uid == uid && strings.HasPrefix(key, prefix) {
					newer[strings.Clone(key)] = true
				}
			}
		}
		for k, v := range l.ids {
			if k.uid == uid && strings.HasPrefix(k.name, prefix) {
				newer[k.name] = v.live
			}
		}
	}
	var keys []string
	r.from(uid, idsBucket, []byte(prefix), func(key, _ []byte) bool {
		if !bytes.HasPrefix(key, []byte(prefix)) {
			return false
		}
		if _, known := newer[string(key)]; !known {
			keys = append(keys, string(key))
		}
		return len(keys) < limit
	})
	for key, live := range newer {
		if live {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys[:min(limit, len(keys))]
}
