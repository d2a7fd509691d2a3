// Package store keeps a partition's items, or the catalogue, in one file.
//
// A store is read when it is opened and when it is compacted; nothing of it stays in memory. A checkpoint
// appends what has changed ([Store.Apply]) and confirms it with a seal ([Store.Sync]): the range is forced to
// disk, then the seal is written and forced to disk. Only then may the journals that hold the same changes
// go. At the next start everything behind the last seal is cut off.
//
// The file only grows. [Store.Compact] writes it anew with the live items alone, at the pace of a [Pacer].
// [Compaction] decides which store is worth it.
package store
