package opensearch

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/remote"
)

// A cause is the "error" of an answer.
type cause struct {
	Type     string  `json:"type"`
	Reason   string  `json:"reason"`
	CausedBy *cause  `json:"caused_by"`
	Roots    []cause `json:"root_cause"`
	// Shards says why shards of a search failed.
	Shards []shardFailure `json:"failed_shards"`
}

type shardFailure struct {
	Reason cause `json:"reason"`
}

// UnmarshalJSON also reads the errors that are only a text.
func (c *cause) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &c.Reason)
	}
	type plain cause
	return json.Unmarshal(b, (*plain)(c))
}

// temporary are the types of errors that say that a node or shard is not there now, whatever their
// status is. An index that is being deleted answers with some of them, too.
var temporary = map[string]bool{
	"already_closed_exception":                 true,
	"circuit_breaking_exception":               true,
	"cluster_manager_not_discovered_exception": true,
	"connect_transport_exception":              true,
	"illegal_index_shard_state_exception":      true,
	"index_closed_exception":                   true,
	"index_shard_closed_exception":             true,
	"index_shard_not_started_exception":        true,
	"master_not_discovered_exception":          true,
	"no_node_available_exception":              true,
	"no_shard_available_action_exception":      true,
	"node_closed_exception":                    true,
	"node_disconnected_exception":              true,
	"node_not_connected_exception":             true,
	"opensearch_rejected_execution_exception":  true,
	"process_cluster_event_timeout_exception":  true,
	"receive_timeout_transport_exception":      true,
	"rejected_execution_exception":             true,
	"search_backpressure_exception":            true,
	"search_context_missing_exception":         true,
	"shard_not_found_exception":                true,
	"shard_not_in_primary_mode_exception":      true,
	"task_cancelled_exception":                 true,
	"timeout_exception":                        true,
	"unavailable_shards_exception":             true,
}

// failed returns the error of an answer of this status.
func failed(status int, body []byte) error {
	var answer struct {
		Error *cause `json:"error"`
	}
	if json.Unmarshal(body, &answer) != nil || answer.Error == nil {
		answer.Error = &cause{Reason: strings.TrimSpace(string(body[:min(len(body), 200)]))}
	}
	return answer.Error.as(status)
}

// as returns a cause as an error that matches what a caller may want to act on.
func (c *cause) as(status int) error {
	said := fmt.Errorf("%s (%s)", c.words(), cmp.Or(c.Type, fmt.Sprint("HTTP status ", status)))
	switch {
	case c.is(func(typ string) bool {
		return typ == "index_not_found_exception" || typ == "aliases_not_found_exception"
	}):
		return fmt.Errorf("%w: %w", flashdb.ErrNotFound, said)
	case c.is(func(typ string) bool { return temporary[typ] }),
		status == http.StatusTooManyRequests, status == http.StatusBadGateway,
		status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout:
		return fmt.Errorf("%w: %w", remote.ErrUnavailable, said)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return fmt.Errorf("access is denied: check %s and %s or %s, and the rights of that account: %w", envUsername, envPassword, envAPIKey, said)
	case status == http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: the request is larger than the node's http.max_content_length: %w", flashdb.ErrInvalid, said)
	case status/100 == 3:
		return fmt.Errorf("the address redirects, which is not followed: give the address of the node itself: %w", said)
	case strings.Contains(c.Reason, "index.knn") || strings.Contains(c.words(), "knn_vector]"):
		return fmt.Errorf("%w: does the node lack the k-NN plugin?", said)
	}
	return said
}

// is reports whether fn is true for the type of a cause, or of one that led to it.
func (c *cause) is(fn func(typ string) bool) bool {
	if c == nil {
		return false
	}
	for i := range c.Roots {
		if fn(c.Roots[i].Type) {
			return true
		}
	}
	for i := range c.Shards {
		if c.Shards[i].Reason.is(fn) {
			return true
		}
	}
	return fn(c.Type) || c.CausedBy.is(fn)
}

// words returns the reason that says most.
func (c *cause) words() string {
	said := c.Reason
	if len(c.Roots) > 0 && c.Roots[0].Reason != "" && c.Roots[0].Reason != said {
		said += ": " + c.Roots[0].Reason
	} else if c.CausedBy != nil && c.CausedBy.Reason != "" {
		said += ": " + c.CausedBy.Reason
	}
	const most = 300
	if len(said) > most {
		said = said[:most] + "..."
	}
	return cmp.Or(said, "no reason given")
}

// shards is how many shards took part in an answer.
type shards struct {
	Total      int            `json:"total"`
	Successful int            `json:"successful"`
	Failed     int            `json:"failed"`
	Failures   []shardFailure `json:"failures"`
}

// missing says in words which shards did not answer, and is empty if all did.
func (s *shards) missing() string {
	if s.Failed == 0 {
		return ""
	}
	said := fmt.Sprintf("%d of %d shards did not answer", s.Failed, s.Total)
	if len(s.Failures) > 0 {
		said += ": " + s.Failures[0].Reason.words()
	}
	return said
}

// whole returns remote.ErrUnavailable unless every shard answered.
func (s *shards) whole(what string) error {
	if missing := s.missing(); missing != "" {
		return fmt.Errorf("opensearch: %s: %w: %s", what, remote.ErrUnavailable, missing)
	}
	return nil
}
