// Package follow reads what a follower applies: a batch of the changes that a leader has journalled.
//
// A [Batch] is checked as a whole before any of it is applied. Items keep their order; of each container the
// last record counts. [Batch.Read] needs no lock, so a follower holds its locks for the changes in memory
// only.
//
// [Digest] sums items and records in any order: two machines with the same content have the same sum.
package follow
