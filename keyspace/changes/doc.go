// Package changes lists what a transaction does to items: for the journal, and to take it back.
//
// An item that was written has one change, however often, and one inverse: back to its state before the transaction. A
// [List] remembers former states and the entries that left their tables until the transaction ends. All tables of a list
// lie in partitions that the transaction has locked.
package changes
