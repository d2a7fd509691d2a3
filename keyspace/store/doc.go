// Package store keeps a partition's items, or the catalogue, in one file.
//
// A start and a compaction read a store; nothing of it stays in memory. A checkpoint appends changes
// ([Store.Apply]) and confirms them with a seal ([Store.Sync]): it forces the range to disk, then writes the
// seal and forces it to disk. Only then may the journals with the same changes be removed. The next start
// cuts off everything behind the last seal.
//
// The file only grows. [Store.Compact] rewrites it with the live items alone, at the pace of a [Pacer].
// [Compaction] decides which store is worth it.
package store
