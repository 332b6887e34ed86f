package control

import (
	"encoding/json"
)

// pathPrefix is the version of the protocol in every call's path.
const pathPrefix = "/v1/"

// A line is one line of a reply. One of its fields is set.
type line struct {
	Progress json.RawMessage `json:"progress,omitempty"`
	Item     json.RawMessage `json:"item,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *Error          `json:"error,omitempty"`
}

// An Error is an error of the owner as it travels. Its code is the text of the
// sentinel error that it matches at the owner, and that it so matches here.
type Error struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Error returns the text that the error had at the owner.
func (e *Error) Error() string { return e.Text }

// Is reports whether target is the sentinel the error matched at the owner.
func (e *Error) Is(target error) bool { return e.Code != "" && target.Error() == e.Code }
