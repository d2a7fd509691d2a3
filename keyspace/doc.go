// Package keyspace holds containers and their items: in memory for reading, in buntdb for keeping.
//
// # In memory
//
// A [Keyspace] is divided into hash partitions by the CRC16 of the id (slot.go). A partition
// (partition.go) is one lock and, for every container that has items in it, a table (table.go):
// an index by id, a roster in order of creation, which gives SCAN its cursor, and two lists of the
// items that can die, those that die soon before those that die late (class.go), from which the
// purge draws its samples. Keys and values lie in large segments, a log in memory that is cleaned
// (arena.go, tidy.go), so that Go's collector has next to nothing to do with them. Containers and what rules them are the catalogue (catalogue.go).
//
// A [Tx] (tx.go, items.go, listing.go) is one command's view: it locks the partitions it needs in
// ascending order, freezes the time, reads and writes, and lets go. Whether an item is dead is asked in one place,
// expiry.Policy.Dead; whoever meets a dead item removes it.
//
// # On disk
//
// What a transaction writes is encoded as records (record.go) and joins, as one atomic group, the
// batch that waits for the journal (journal.go). [Keyspace.Wait] commits the batch, everybody's
// groups together, as one item of a buntdb file: a single write, and with appendfsync always a
// single fsync, however many partitions and connections took part; room.go makes that one short. No
// reply leaves before what it reports or reveals is committed; a [LSN] says how far that is.
//
// Behind the journal every partition has a buntdb file with one item a document (store.go). A
// checkpoint (checkpoint.go) folds into it, once a minute or so, the latest state of what has been
// written since: an item overwritten a thousand times is stored once, one that has died meanwhile
// never. At start (load.go) the stores are read side by side and the journals replayed on top. That
// time does not run backwards, across a restart either, is the business of clock.go.
//
// FORMAT.md draws the files. What buntdb does not guard against is named where our guards
// stand: commandreader.go, journal.go, dbfile.go.
//
// # From outside
//
// A folder that no server uses can be read without changing it (survey.go). [Inspect] tells what is sound
// in it; files are judged by the functions that judge them at a start. Of damaged ones all is read that
// a checksum proves (salvage_store.go, salvage_journal.go); [Repair] copies it into a new folder.
// [ReadFolder], [Tx.RestoreContainer] and [Tx.Restore] (transfer.go) move data out and in.
//
// # Locks
//
// In this order: partitions by ascending number, then the journal's. The catalogue is read under
// any partition's lock and changed under all. No lock of a partition is held during I/O.
package keyspace
