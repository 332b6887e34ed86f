// Package shell reads command lines from a person or a pipe: it edits and completes them on a
// terminal, splits them into words, and runs them one after the other until the input ends. The
// caller decides what the words mean.
//
// # Words
//
// A line is words between blanks. A word is taken as it is, but:
//
//	'...'   everything up to the next ' as it is
//	"..."   Go's string escapes: \n, \t, \", \\, \x00, é
//	\c      outside quotes, the character c
//	#       where a word would begin: the rest of the line is a comment
//
// so that any key can be written, whatever bytes it has; Quote writes one.
//
// A Shell is used by one goroutine.
package shell
