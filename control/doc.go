// Package control lets other processes use a database that this one has open. Only one process at a
// time has a directory open. While it serves control.sock, a unix socket there, every flashdb
// command sends its calls to it without being told, and so does a program by Dial. Only the user
// who runs the owner may connect, and nothing listens on a network.
//
// Serve answers on the socket of an open database; Dial asks it. A Client has the methods of a
// database and of its collections, and by Local a database of this process has the same ones.
// Server, Client and Collection are safe for concurrent use.
//
// # Calls
//
// A call is HTTP with JSON: a POST (or, without a body, a GET) of /v2/CALL, or of
// /v2/COLLECTION/CALL for one of a collection. Its name is that of the method in small letters. Its
// body is one JSON object, which may be left out when every field has its zero value; a field that
// the owner does not know is refused, since ignoring a filter or a limit would give a wrong answer.
// The reply is one JSON object per line:
//
//	{"progress": {...}}    any number, about work under way
//	{"item": {...}}        any number, the parts of a long answer
//	{"result": ...}        last, when the call succeeded
//	{"error": {"code": "not found", "text": "..."}}    last, when it failed
//
// A reply that ends with neither result nor error was cut off. An error before the first other line
// has an HTTP status of 400 or above, too; its code is the text of the sentinel error it matches,
// and empty for none. A caller that hangs up cancels its call.
//
//	curl --unix-socket papers.flash/control.sock http://flashdb/v2/stats
//	curl --unix-socket papers.flash/control.sock http://flashdb/v2/papers/predict \
//	    -d '{"key": "1706.03762", "k": 5}'
//
// JSON text is Unicode, and keys are any bytes: text that is not UTF-8, or that begins with
// "base64:", travels as "base64:" and its bytes in base64. Infinite floats and NaN, for which JSON
// has no numbers, travel as "Infinity", "-Infinity" and "NaN". An embedding travels as the base64
// of its little-endian float32 values, and is read from an array of numbers as well. The protocol
// is for clients of the same version of flashdb and for people with curl, and may change between
// versions.
package control
