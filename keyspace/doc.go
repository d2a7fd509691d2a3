// Package keyspace holds containers and their items: in memory for reading, in buntdb for keeping.
//
// # In memory
//
// A [Keyspace] has hash partitions by the CRC16 of the id. A partition (partition.go) is one lock and a
// memtable.Shard: its share of every container's items. Package memtable describes how they lie in memory. Containers
// and their policies are the catalogue (catalogue.go).
//
// A [Tx] (tx.go, items.go, scan.go) is one command's view. It locks the partitions it needs in ascending order,
// freezes the time, reads, writes and unlocks. expiry.Policy.Dead alone decides whether an item is dead; a transaction
// that meets a dead item removes it.
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
