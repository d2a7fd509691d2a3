// Package expiry decides when items die and finds the dead.
//
// # The rules
//
// rules.go has the rules of time to live, those of Azure Cosmos DB, as pure functions. A container has a
// default [TTL]; an item may have an end of its own. With the time of the item's last write and the time now
// they decide whether it is dead:
//
//	item \ container's default   off             -1                n
//	inherits                     lives for ever  lives for ever    dies n s after its last write
//	never                        lives for ever  lives for ever    lives for ever
//	has an end of its own        lives for ever  dies at its end   dies at its end
//	inherits, with a cap         lives for ever  dies at its cap   dies at the earlier of both
//
// [Policy.Dead] alone answers for one item, [Policy.DeadTo] for all items at once. A [Policy] is the
// container's default and two marks: up to where past defaults have killed. The marks keep dead items dead,
// whatever the default becomes, and no other history is kept. [Policy.Change] takes constant time and space,
// and no item is rewritten when a policy changes.
//
// [ParseMember] reads the member "ttl" of a document, [ParseDefault] and [ParseOption] the arguments of
// commands. They accept only legal values; a [RangeError] names the value and the legal ones.
//
// # Time
//
// The package takes the time as an argument: milliseconds since the epoch, positive. Package clock reads it.
//
// # The purge
//
// A dead item is absent at once; its memory is freed later. [Purge] takes small samples of the items that die
// first from pools of items that could die. It removes the dead, within a budget of CPU time that an effort
// of 1 to 10 sets. purge.go explains the algorithm, [Runner] runs it in the background, and [Stats] count it.
// A pool with a [Timer] is sampled in the millisecond in which its next item dies: see timers.go.
//
// The package does not know keyspaces: their parts are [Pool] values to it.
package expiry
