// Package topology describes a cluster as one of its nodes sees it, as values that commands show.
//
// A [View] is immutable. The node makes a new one at each change and at least each 100 ms, and hands out a
// pointer, so that a command reads it without a lock.
package topology
