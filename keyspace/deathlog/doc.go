// Package deathlog is the log of a container's deaths: how its entries lie in items, are kept in memory, read
// and taken out.
//
// A log is a container of its own, without a name. An entry is an item in it, in the partition of the item
// that died:
//
//	41~0000019b76dacf1100000003:order-1    the key: the log's number, the id of the entry, and the id of the item
//	1 48d026f5 e 1767225610001 0 2a 1 cd 10000 0 1f {"sku":"A-1"}
//	           | |             | |  | || |     | |  |
//	           | |             | |  | || |     | |  body of the item, as is, to the end
//	           | |             | |  | || |     | etag of the settings that ruled
//	           | |             | |  | || |     own end: 0 and -1 as in the item's record, else + and ms after the last write
//	           | |             | |  | || ms from the last write to the death
//	           | |             | |  | |kind of the item; d- or p-: the log keeps no bodies
//	           | |             | |  | cause: d document, c container, x change, r deleted (removed by a client), f field
//	           | |             | |  ms from the death to the time of the entry
//	           | |             | etag of the item
//	           | |             0: the entry inherits the log's default, how long entries are kept
//	           | when the death was logged, ms
//	           kind
//
// A key with elements has their number in place of a body, and the kind f-. Of an element that has died the
// field comes before the value, with its length and a colon: see package elements.
//
// The id of an entry has 16 hexadecimal digits of its time and 8 of its number, so the order of texts is that
// of ids.
//
// The state is an item a partition, under the id of zeros: see [State].
//
// In memory a log has a [Part] in each partition, over a table of package memtable. Entries come in the order
// of their ids, as the [Generator] gives them under the partition's lock. So a part is sorted, and an id is
// found by binary search. A [Reader] merges the parts.
//
// A [Log] reads the log of a container within a transaction, and removes entries. Its [Source] locks the
// parts and journals what is removed.
//
// The package does no I/O and has no locks but that of the generator: the owner's lock protects a part.
package deathlog
