// Package lint holds the project's own rules as tests: which package may import which, how long a
// file or function may be, that every package says what it is.
package lint
