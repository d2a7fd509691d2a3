package selection

import "mayfly/keyspace/record"

// Item is a living item that a query examines. It is safe to keep.
type Item struct {
	ID     string
	Item   record.Item
	Proven bool // the conditions that the plan proves are true of it

	partition int
}

// Slice is the part of a container that a query sees at one moment.
type Slice struct {
	Items []Item
	Dead  int  // items met that are dead, and are removed now if they are purgeable
	Last  bool // nothing follows

	Counted int // living documents that a counting plan selects, and has not read
	Plain   int // living plain keys that a counting plan has met
	Missed  int // look-ups in an index that have found nothing
	Ordered int // items that were brought into order for this and later queries
	Walked  int // bytes of documents that were read to bring items into order
}

// Entries bounds the entries of a slice, and so the time for which a partition is locked.
const Entries = 512

// firstSlice returns the entries of the first slice of a query that is probably content with some; 0 if it
// wants all.
func firstSlice(wanted int) int {
	if wanted <= 0 {
		return Entries
	}
	return min(wanted, Entries)
}

// nextSlice returns the entries of the slice behind one of a size.
func nextSlice(size int) int { return min(4*size, Entries) }

// Prefetch reads the beginnings of items into the processor's cache. No read waits for another, so the cache
// misses overlap. The sum keeps the reads from being optimised away.
func Prefetch(items []Item) (sum int) {
	const line = 64 // bytes of the processor's cache
	for i := range items {
		body := items[i].Item.Body
		if body != "" {
			sum += int(body[0])
		}
		if len(body) > line {
			sum += int(body[line])
		}
	}
	return sum
}
