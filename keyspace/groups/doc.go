// Package groups keeps the state of a consumer group of a stream: what was delivered to which consumer and is
// not acknowledged yet.
//
// A [Group] is a view of items, which a hidden container keeps on disk:
//
//	{g}last           the last delivered id and the number of entries read: "1767225610000-3 17"
//	{g}c:<name>       a consumer and when it was seen, in ms: "1767225610000"
//	{g}<entry id>     a pending entry: time of its delivery in ms, number of deliveries, consumer: "1767225610000 1 w1"
//
// Each operation changes the state and notes the changes of items in [Changes], so that the owner can journal
// them. [Changes.Rollback] takes them back. [Load] makes a group of the items.
//
// The replies are those of Redis 7.0: package commands has their form.
//
// The package is pure. It has no locks: the owner's lock protects a group.
package groups
