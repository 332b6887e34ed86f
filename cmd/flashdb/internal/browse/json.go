package browse

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/flashdb/flashdb"
	"github.com/flashdb/flashdb/cmd/flashdb/internal/show"
	"github.com/flashdb/flashdb/internal/wire"
)

// decodeKey returns the key that travelled as text. JSON and addresses hold Unicode only, but keys
// are any bytes.
func decodeKey(text string) (string, error) {
	key, err := wire.Unquote(text)
	if err != nil {
		return "", badRequest("key %q: what follows \"base64:\" is no base64", show.Clip(text, 60))
	}
	return key, nil
}

// A ref names a node for the page: Key is what it asks with, and Label what it shows. Label is left
// out where it is the same. No label holds a character that cannot be seen.
type ref struct {
	Key   string `json:"key"`
	Label string `json:"label,omitempty"`
}

func refTo(key string) ref {
	r := ref{Key: wire.Quote(key), Label: show.Text(key)}
	if r.Label == r.Key {
		r.Label = ""
	}
	return r
}

// shown is show.Text of each, and a list even of none.
func shown(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = show.Text(t)
	}
	return out
}

// A number is a float that JSON may have no number for: it is a word then.
type number float64

// MarshalJSON implements json.Marshaler.
func (n number) MarshalJSON() ([]byte, error) {
	if word, special := wire.Word(float64(n)); special {
		return strconv.AppendQuote(nil, word), nil
	}
	return strconv.AppendFloat(nil, float64(n), 'g', 9, 64), nil
}

// A failure is the answer of a call that failed.
type failure struct {
	Error string `json:"error"`
}

// A requestError is a fault of the request itself.
type requestError struct {
	status int
	text   string
}

func (e *requestError) Error() string { return e.text }

func badRequest(format string, args ...any) error {
	return &requestError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func statusOf(err error) int {
	var bad *requestError
	switch {
	case errors.As(err, &bad):
		return bad.status
	case errors.Is(err, flashdb.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, flashdb.ErrInvalid), errors.Is(err, flashdb.ErrDim):
		return http.StatusBadRequest
	case errors.Is(err, flashdb.ErrReadOnly):
		return http.StatusForbidden
	}
	return http.StatusInternalServerError
}

func reply(w http.ResponseWriter, status int, answer any) {
	b, err := json.Marshal(answer)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"error":"the answer has no JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b) // the page may have gone
}

// maxBody bounds the body of a POST.
const maxBody = 1 << 20

// readBody reads the one JSON object of a POST.
func readBody(r *http.Request, v any) error {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return &requestError{http.StatusUnsupportedMediaType, "the body is not of type application/json"}
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return badRequest("the body ended early: %v", err)
	}
	if len(b) > maxBody {
		return &requestError{http.StatusRequestEntityTooLarge, "the body is larger than 1 MiB"}
	}
	if err := json.Unmarshal(b, v); err != nil {
		return badRequest("the body is no such JSON: %v", err)
	}
	return nil
}
