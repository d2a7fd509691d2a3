// Package storage keeps the files of a keyspace: it loads them, and brings what changes in memory to them.
//
//   - [Open], [Engine.Load] and [Engine.Begin] open the folder, read the stores side by side, replay the
//     journals and begin a new one.
//   - [Engine.Save] makes a checkpoint: it captures the changes piece by piece and applies them to the
//     stores.
//   - Compactions rewrite stores with waste, one after the other; a file that is found damaged is written
//     anew from memory; [Engine.Backup] copies the folder while all goes on.
//   - On a full disk a checkpoint uses the reserve, and compactions come between its steps.
//
// The engine knows items only as the shards of package memtable, and containers as records that a [Memory]
// returns. It locks a partition for a piece at a time, never during I/O.
//
// Locks: [Engine.Lock] first, which a checkpoint or a compaction holds, then those of partitions, then the
// journal's.
//
// # Waste
//
// Waste is text in a store that no longer belongs to an item: an overwritten record, a deleted one, a delete.
// A checkpoint that writes such a change notes its moment for the store, and keeps the moments in the
// catalogue under [record.WasteKey]. A rule says how old the waste of a store may become. Then the store is
// compacted, whatever its size.
//
// # A full disk
//
//  1. The write that meets the full disk releases the reserve and is repeated.
//  2. From then on only writes that free space are admitted, up to a share of the reserve. The rest is for
//     checkpoints and compactions, which give the room of deleted items back.
//  3. Once the disk has room for the reserve and some more, the reserve is filled, and everything is admitted
//     again.
//
// The journal stays much smaller than the reserve, so that a checkpoint fits into it. A start that cannot
// fill the reserve begins in this state. If it cannot even begin a journal, nothing is written until there is
// room, and reads work.
//
// # Scrubs
//
// All items are in memory, so a disk that loses bits does no harm until the next start, which then refuses
// the folder. A [Scrubber] finds the damage before: it reads every finished byte of the folder at a gentle
// pace and checks it as a start does. It reads from the disk, not from the system's memory, and leaves none
// of what it read there. A damaged file is written anew from memory. Backups copy files with the same checks.
package storage
