// Package storage keeps the files of a keyspace: it loads them, and brings what changes in memory to them.
//
//   - [Open], [Engine.Load] and [Engine.Begin] open the folder, read the stores side by side, replay the journals and
//     begin a new one.
//   - [Engine.Save] makes a checkpoint: it captures the changes piece by piece and applies them to the stores.
//   - Compactions rewrite stores with waste, one after the other; a file that is found damaged is written anew from
//     memory; [Engine.Backup] copies the folder while all goes on.
//   - On a full disk a checkpoint uses the reserve (package reserve), and compactions come between its steps.
//
// The engine knows items only as the shards of package memtable, and containers as records that a [Memory] returns. It
// locks a partition for a piece at a time, never during I/O.
//
// Locks: [Engine.Lock] first, which a checkpoint or a compaction holds, then those of partitions, then the journal's.
package storage
