// Package index keeps the values of documents in order, up to date with their tables. There is a tree of
// small entries per container and partition, over members that the user names. The package knows no store and
// no expiry, and has no locks: the lock of its partition protects a table with its trees, and readers look at
// the items for the dead.
//
//   - A [Definition] says what an index is over, and a [Reader] reads the keys of a document for all indexes
//     of a container in one pass.
//   - A [Key] is an order-preserving form of the values. It proves comparisons unless it is cut.
//   - A [Tree] holds keys and handles of items: tidwall/btree over entries of 16 bytes without pointers. What
//     does not fit into 8 bytes lies in the tree's dictionary, each text once.
package index
