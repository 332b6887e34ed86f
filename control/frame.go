package control

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/flashdb/flashdb"
)

// pathPrefix is the version of the protocol in every call's path.
const pathPrefix = "/v2/"

// A line is one line of a reply. One of its fields is set.
type line struct {
	Progress json.RawMessage `json:"progress,omitempty"`
	Item     json.RawMessage `json:"item,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *failure        `json:"error,omitempty"`
}

// A failure is an error of the owner as it is sent. Its code is the text of the sentinel error that
// it matches there. So it matches the same sentinel here.
type failure struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Error returns the text that the error had at the owner.
func (e *failure) Error() string { return e.Text }

// Is reports whether target is the sentinel the error matched at the owner.
func (e *failure) Is(target error) bool { return e.Code != "" && target.Error() == e.Code }

// sentinels are the errors that keep their identity, with the HTTP status of each. The first one
// that an error matches counts.
var sentinels = []struct {
	err    error
	status int
}{
	{flashdb.ErrNotFound, http.StatusNotFound},
	{flashdb.ErrExists, http.StatusConflict},
	{flashdb.ErrClosed, http.StatusServiceUnavailable},
	{flashdb.ErrDim, http.StatusBadRequest},
	{flashdb.ErrInvalid, http.StatusBadRequest},
	{flashdb.ErrReadOnly, http.StatusServiceUnavailable},
	{flashdb.ErrCorrupt, http.StatusInternalServerError},
	{flashdb.ErrVersion, http.StatusInternalServerError},
	{flashdb.ErrLocked, http.StatusInternalServerError},
	{flashdb.ErrQuality, http.StatusInternalServerError},
	{context.Canceled, http.StatusInternalServerError},
	{context.DeadlineExceeded, http.StatusInternalServerError},
}

// failureOf returns an error as it is sent, and its HTTP status.
func failureOf(err error) (f *failure, status int) {
	var unknown *unknownCall
	var tooLarge *http.MaxBytesError
	f = &failure{Text: err.Error()}
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			f.Code = s.err.Error()
			return f, s.status
		}
	}
	switch {
	case errors.As(err, &unknown):
		return f, http.StatusNotFound
	case errors.As(err, &tooLarge):
		return f, http.StatusRequestEntityTooLarge
	}
	return f, http.StatusInternalServerError
}

// A failed is an error that is part of an answer, or nil.
type failed struct{ error }

// MarshalJSON implements json.Marshaler.
func (f failed) MarshalJSON() ([]byte, error) {
	if f.error == nil {
		return []byte("null"), nil
	}
	travels, _ := failureOf(f.error)
	return json.Marshal(travels)
}

// UnmarshalJSON implements json.Unmarshaler.
func (f *failed) UnmarshalJSON(b []byte) error {
	var came *failure
	if err := json.Unmarshal(b, &came); err != nil {
		return err
	}
	f.error = nil
	if came != nil {
		f.error = came
	}
	return nil
}
