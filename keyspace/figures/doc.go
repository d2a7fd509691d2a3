// Package figures holds what a keyspace tells of itself: counters, sizes and the errors of background work.
package figures
