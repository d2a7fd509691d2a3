// Package indexing keeps the trees of a container's indexes up to date with the items of its tables.
//
//   - An [Index] is one index of a container, and a [Set] all of them: definitions and figures.
//   - A [Table] has the trees of one table of items. It observes the table (package memtable), builds the trees of new
//     indexes step by step, and counts their memory in the table's.
//
// It has no locks: the lock of its partition protects a table with its trees. The figures of an index need none.
package indexing
