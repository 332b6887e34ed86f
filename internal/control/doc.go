// Package control is how a process asks another one that has a database open:
// HTTP with JSON over a unix socket in the database's directory. It owns the
// socket's name and place, the framing of calls, and their messages; it knows
// no database. Server and Client are safe for concurrent use.
//
// # Calls
//
// A call is a POST (or, without a body, a GET) of /v1/NAME. Its body is one
// JSON object, which may be left out when every field has its zero value; a
// field that the owner does not know is refused, since to pass over a filter
// or a bound would be a wrong answer. The reply is one JSON object a line:
//
//	{"progress": {...}}    any number, about work under way
//	{"item": {...}}        any number, the parts of a long answer
//	{"result": {...}}      last, when the call succeeded
//	{"error": {"code": "not found", "text": "..."}}    last, when it failed
//
// A reply that ends with neither result nor error was cut off. An error before
// the first other line has an HTTP status of 400 or above, too; its code is
// the text of the sentinel error it matches, and empty for none. A caller that
// hangs up cancels its call.
//
//	curl --unix-socket papers.flash/control.sock http://flashdb/v1/stats
//	curl --unix-socket papers.flash/control.sock http://flashdb/v1/predict \
//	    -d '{"collection": "papers", "keys": ["1706.03762"], "k": 5}'
//
// JSON text is Unicode, and keys are any bytes: text that is not UTF-8, or that
// begins with "base64:", travels as "base64:" and its bytes in base64. Floats
// that JSON has no number for travel as "Infinity", "-Infinity" and "NaN". A Vector
// travels as the base64 of its little-endian float32 values, and is read from an
// array of numbers as well.
package control
