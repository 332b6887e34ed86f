// Package wire writes and reads values of Go as JSON that loses nothing, for package control.
//
// JSON text is Unicode, and keys are any bytes: text that is not UTF-8, or that begins with
// "base64:", travels as "base64:" and its bytes in base64. Floats that JSON has no number for
// travel as "Infinity", "-Infinity" and "NaN". A Vector travels as the base64 of its little-endian
// float32 values, and is read from an array of numbers as well.
package wire
