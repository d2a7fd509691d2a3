// Package deathlog keeps the logs of deaths in memory, reads them and takes entries out: in the order of
// their ids.
//
// A log has a [Part] in each partition, over a table of package memtable. Entries come in the order of their
// ids, as the [Generator] gives them under the partition's lock. So a part is sorted, and an id is found by
// binary search. A [Reader] merges the parts.
//
// A [Log] reads the log of a container within a transaction, and removes entries. Its [Source] locks the
// parts and journals what is removed.
//
// The package does no I/O and has no locks but that of the generator: the owner's lock protects a part.
package deathlog
