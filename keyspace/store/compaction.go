package store

import "mayfly/keyspace/aof"

// Compaction says when a store is worth compacting.
type Compaction struct {
	// Percentage is auto-compact-percentage: the most waste in a store, in percent of what its live items take. In
	// all stores together it is half of that at most. 0: never automatically.
	Percentage int
	MinSize    int64 // auto-compact-min-size: bytes of all stores together below which it never happens
}

// DefaultCompaction applies unless it is configured.
var DefaultCompaction = Compaction{Percentage: 100, MinSize: 64 << 20}

// Next returns the store of candidates that is to be compacted now, nil for none: the one with the largest share of
// waste. all: every store with waste counts.
//
// A single store may hold waste up to the percentage, all together half of that. Stores whose waste grows
// alike would otherwise all reach their largest size at the same time. Like this they are compacted in turn:
// when one has reached the percentage the others are spread evenly below it, so it costs no more.
func (when Compaction) Next(stores, candidates []*Store, all bool) *Store {
	var worst *Store
	least := when.MinSize / int64(max(len(stores)-1, 1)) // but for the catalogue's
	for _, s := range candidates {
		if s.Waste() > aof.SealSize && (all || s.Size() >= least) && (worst == nil || s.wasteShare() > worst.wasteShare()) {
			worst = s
		}
	}
	if worst == nil || all {
		return worst
	}
	live, size := Sizes(stores)
	allowed := float64(when.Percentage) / 100
	tooMuch := size >= when.MinSize && float64(size-live) > float64(live)*allowed/2 && worst.wasteShare() > allowed/2
	if allowed > 0 && (tooMuch || worst.wasteShare() > allowed) {
		return worst
	}
	return nil
}

// Exceeded reports whether there is a quarter more waste than that at which compactions begin: they do not
// keep up.
func (when Compaction) Exceeded(stores []*Store) bool {
	live, size := Sizes(stores)
	return when.Percentage > 0 && size >= when.MinSize && float64(size-live) > float64(live)*float64(when.Percentage)/100/2*1.25
}
