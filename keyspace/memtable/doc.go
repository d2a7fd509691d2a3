// Package memtable keeps the items of a partition in memory, by id, in order of creation and by expiry.
//
// A [Shard] is one partition's share. It has a [Table] for every container with items there. A table has
// these parts, each in a file of its own:
//
//   - slab: the entries, one cache line an item, named by 32-bit handles;
//   - arena: keys and records, in log-structured memory that is cleaned in small steps; a large body has
//     memory of its own (body.go), so that a new header costs no copy of it;
//   - index: a hash table by id that grows one bucket at a time;
//   - insertionOrder: sequence numbers, from which SCAN has its stable cursor;
//   - expiryQueue: items by the moment of death, in two queues: those that inherit the container's default,
//     and those with an end of their own;
//   - access: a word beside each entry, in which the owner keeps accesses. It takes memory only once it is
//     used.
//
// None of them has pointers to items, and none is rebuilt as a whole: the collector has little to scan, and
// no operation waits for a large one.
//
// # Records
//
// [Table.Insert] and [Table.Replace] encode an item's record straight into the arena: the body is copied
// once, a large one before the lock is taken if the caller has made a [Body] of it. [Table.KeyAndRecord]
// returns a view of exactly the bytes that journals and stores contain. Bytes in the arena never change and
// never move, so views are safe to keep.
//
// # What the store has to learn
//
// Inserted and replaced entries are dirty. [Shard.BeginCapture] and [Shard.Capture] return what a checkpoint
// has to write, in pieces. Items removed before the store has them never reach it. [Table.EachStored] returns
// what a store has that is written anew.
//
// # Rollback
//
// The caller keeps a copy of an [Entry] from before a change. [Table.Replace] and [Table.Remove] leave the
// old record in place until [Table.FreeReplaced] or [Table.Release] frees it, so [Table.Restore] can go back.
//
// # Locks
//
// The package has none and does no I/O. The owner's lock protects a shard with its tables and entries; only
// [Shard.Memory] and [Shard.Garbage] need no lock.
package memtable
