// Package eviction chooses the items that go when memory is short: it keeps time and frequency of accesses,
// and the best candidates.
//
// A [Tracker] keeps an item's accesses in a word of 32 bits, which lies beside the item. For LRU the word is
// the time of the last access, for LFU a logarithmic counter and the time from which it decays. A [Pool]
// keeps the candidates of several samples. The algorithms are those of Redis' evict.c.
//
// The package knows neither items nor locks.
package eviction
