// Package show writes stored text, counts, sizes and times for people, and finds the words that an
// unknown one may have been meant to be. Its functions keep no state; a NearSearch is used by one
// goroutine.
package show
