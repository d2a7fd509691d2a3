package store

import "mayfly/keyspace/aof"

// Compaction says when a store is worth compacting.
type Compaction struct {
	// Percentage is auto-compact-percentage: the largest waste of a store, in percent of its live bytes. All
	// stores together may have half of that. 0: never automatically.
	Percentage int
	MinSize    int64 // auto-compact-min-size: smaller stores, all together, are never compacted; bytes
}

// DefaultCompaction is the default configuration.
var DefaultCompaction = Compaction{Percentage: 100, MinSize: 64 << 20}

// CompactionWhenFull is the configuration while the disk is full: all compactions that help.
var CompactionWhenFull = Compaction{Percentage: 10, MinSize: 256 << 10}

// Next returns the candidate to compact now, nil for none: the one with the largest share of waste. With all,
// every store with waste qualifies. more, which may be nil, is how many bytes are about to be appended to a
// store, whose live size counts them already.
//
// A single store may have waste up to the percentage, all together half of that. Otherwise stores whose waste
// grows alike would all reach their largest size at the same time. This way they are compacted in turn, at
// the same cost: when one reaches the percentage, the others are spread evenly below it.
func (when Compaction) Next(stores, candidates []*Store, all bool, more func(*Store) int64) *Store {
	if more == nil {
		more = func(*Store) int64 { return 0 }
	}
	share := func(s *Store) float64 { return float64(s.Waste()+more(s)) / float64(max(s.Live(), 1)) }
	var worst *Store
	least := when.MinSize / int64(max(len(stores)-1, 1)) // but for the catalogue's
	for _, s := range candidates {
		if s.Waste()+more(s) > aof.SealSize && (all || s.Size()+more(s) >= least) && (worst == nil || share(s) > share(worst)) {
			worst = s
		}
	}
	if worst == nil || all {
		return worst
	}
	live, size := Sizes(stores)
	for _, s := range stores {
		size += more(s)
	}
	allowed := float64(when.Percentage) / 100
	tooMuch := size >= when.MinSize && float64(size-live) > float64(live)*allowed/2 && share(worst) > allowed/2
	if allowed > 0 && (tooMuch || share(worst) > allowed) {
		return worst
	}
	return nil
}

// Exceeded reports whether compactions do not keep up: the waste is a quarter above the limit.
func (when Compaction) Exceeded(stores []*Store) bool {
	live, size := Sizes(stores)
	return when.Percentage > 0 && size >= when.MinSize && float64(size-live) > float64(live)*float64(when.Percentage)/100/2*1.25
}
