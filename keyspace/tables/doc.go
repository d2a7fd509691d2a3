// Package tables holds the items of containers in the partitions of a keyspace.
//
// A container has a [Table] in each [Partition] where it has items: one of package memtable with its indexes,
// with the part of a log, a timer if its deaths are to be punctual, and what is known of the dead that stay.
// Attached tables are listed for the purge and for eviction. Those of a container that is set aside are
// hidden: they stay in their partitions only.
//
// What tables need of the keyspace and its containers besides is a [Host].
package tables
