// Package liveness finds the live items of a partition's store in memory, for its compaction.
package liveness
