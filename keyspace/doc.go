// Package keyspace holds containers and their items: in memory for reading, in files for keeping.
//
// # In memory
//
// A [Keyspace] is divided into hash partitions by the CRC16 of the id (package record). A partition is one
// lock and a table for every container that has items in it (packages tables and memtable). A table has an
// index by id, an insertion order, which gives SCAN its cursor, and two expiry queues, which the purge
// samples. Containers and their policies are the catalogue (listing.go, catalogue.go).
//
// A [Tx] (tx.go, items.go, scan.go) is one command's view. It locks the partitions it needs in ascending
// order, freezes the time, reads, writes and unlocks. Whether an item is dead is asked in one place,
// expiry.Policy.Dead. A transaction that meets a dead item removes it.
//
// # On disk
//
// When a transaction ends, its changes join the batch that waits for the journal, as one atomic group. The
// journal copies the records from the tables. [Keyspace.Wait] commits the batch for all groups together
// (package journal). No reply leaves before what it reports or reveals is committed; an [LSN] says how far
// that is.
//
// Behind the journal every partition has a store (package store). A checkpoint (package storage) brings the
// latest state of what has been written since the last one to it. An item overwritten a thousand times is
// stored once. One that has died meanwhile is not stored. A start (load.go) reads the stores side by side and
// replays the journals. Package lease keeps time from running backwards across a restart.
//
// # Indexes and queries
//
// Package index keeps the indexes of a container up to date with its tables, and package selection reads what
// a query may select. Here are the locks, the catalogue and rollback (indexes.go, select.go).
//
// FORMAT.md draws the files. Package aof reads and writes their format with checks, package datadir knows the
// folder, and package repair reads folders that no server uses.
//
// # Locks
//
// In this order: partitions by ascending number, then the journal's. The catalogue is read under any
// partition's lock and changed under all. No lock of a partition is held during I/O.
package keyspace
