// Package expiry decides when items die and finds the dead.
//
// # The rules
//
// rules.go holds the rules of time to live, those of Azure Cosmos DB, as pure functions. A container
// has a default [TTL]; an item may have its own end. Together with the time of the item's last write
// and the moment now they say whether it is dead:
//
//	item \ container's default   off             -1                n
//	inherits                     lives for ever  lives for ever    dies n s after its last write
//	never                        lives for ever  lives for ever    lives for ever
//	has an end of its own        lives for ever  dies at its end   dies at its end
//
// [Policy.Dead] is the one place in the program that answers this question, [Policy.DeadTo] the same
// for all items at once. A [Policy] is the container's default together with two marks: up to where
// past defaults have killed. They keep dead what was dead once, whatever the default is changed to
// later, and they are all the history there is: [Policy.Change] takes constant time and space,
// and no item is ever rewritten because a policy changed.
//
// [ParseMember] reads the member "ttl" of a document, [ParseDefault] and [ParseOption] what commands
// take. They accept what is legal and nothing else; a [RangeError] names the value and what is.
//
// # Time
//
// The package takes the time as an argument: milliseconds since the epoch, positive. Package clock
// reads it.
//
// # The purge
//
// A dead item is as good as gone; its memory is not. [Purge] takes small samples of those that die first
// from pools of items that could die, and removes the dead, within a budget of CPU time that an effort
// of 1 to 10 sets. purge.go explains how, [Runner] does it in the background, and [Stats] count it.
//
// The package knows nothing of keyspaces: their parts are a [Pool] to it.
package expiry
