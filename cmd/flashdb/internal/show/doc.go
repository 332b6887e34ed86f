// Package show writes stored text, counts, sizes and times for people. Its functions keep no state.
package show
