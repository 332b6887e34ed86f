// Package control lets other processes use a database that this one has open. Only one process at a
// time has a directory open: its owner. While the owner serves control.sock, a unix socket in the
// directory, every flashdb command sends its calls there by itself. A program does so with Dial.
// Only the user who runs the owner may connect. Nothing listens on a network.
//
// Serve answers on the socket of an open database. Dial connects to it. A Client has the methods of
// a database and of its collections. Local returns a Client of a database of this process. Server,
// Client and Collection are safe for concurrent use.
//
// # Calls
//
// A call is HTTP with JSON: a POST (or, without a body, a GET) of /v2/CALL, or of
// /v2/COLLECTION/CALL for one of a collection, which may be COLLECTION@RELEASE for one that is not
// live. Its name is that of the method in small letters. Its body is one JSON object, which may be
// left out when every field has its zero value; a field that the owner does not know is refused,
// since ignoring a filter or a limit would give a wrong answer.
// The reply is one JSON object per line:
//
//	{"progress": {...}}    any number, about work under way
//	{"item": {...}}        any number, the parts of a long answer
//	{"result": ...}        last, when the call succeeded
//	{"error": {"code": "not found", "text": "..."}}    last, when it failed
//
// A reply that ends with neither result nor error was cut off. If the error is the first line, the
// HTTP status is 400 or above. The code of an error is the text of the sentinel error that it
// matches, or empty. Closing the connection cancels the call.
//
//	curl --unix-socket papers.flash/control.sock http://flashdb/v2/stats
//	curl --unix-socket papers.flash/control.sock http://flashdb/v2/papers/predict \
//	    -d '{"key": "1706.03762", "k": 5}'
//
// JSON text is Unicode, but keys are any bytes. So text that is not UTF-8, or that begins with
// "base64:", is sent as "base64:" and its bytes in base64. Infinite floats and NaN, which JSON does
// not have, are sent as "Infinity", "-Infinity" and "NaN". An embedding is sent as the base64 of
// its little-endian float32 values. An array of numbers is accepted too. The protocol is for
// clients of the same version of flashdb and for people with curl, and may change between versions.
package control
