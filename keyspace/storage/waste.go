package storage

import (
	"encoding/json"
	"fmt"
	"time"

	"mayfly/keyspace/record"
)

// Without erase-within the age of waste grows with the stores, so that compactions by age rewrite at most
// bytesPerSecond on average.
const (
	minAge         = 5 * time.Minute
	maxAge         = 24 * time.Hour
	bytesPerSecond = 256 << 10
)

// keptEnds is how long cut-off ends of files are kept without erase-within.
const keptEnds = 30 * 24 * time.Hour

// wasteRule says how long waste may stay in files.
type wasteRule struct {
	// within is erase-within: what is gone is in no file of the data folder after this time. 0 promises
	// nothing. The least besides 0 is 10 minutes: a checkpoint, a compaction and their repetition fit into
	// it.
	within time.Duration
	// never says that stores are not compacted by age without within.
	never bool
}

// age returns the age at which the waste of a store is due, if all stores have this many bytes; false for no
// age. Half of within is left for the purge, the checkpoint and the compaction.
func (r wasteRule) age(bytes int64) (time.Duration, bool) {
	switch {
	case r.within > 0:
		return r.within / 2, true
	case r.never:
		return 0, false
	}
	seconds := min(bytes/bytesPerSecond+1, int64(maxAge/time.Second))
	return max(time.Duration(seconds)*time.Second, minAge), true
}

// endAge returns the age at which an end of a file is due that a start has cut off. What it holds was written
// before the cut.
func (r wasteRule) endAge() time.Duration {
	if r.within > 0 {
		return r.within / 2
	}
	return keptEnds
}

// late reports whether waste of an age endangers within, so that its compaction must not rest.
func (r wasteRule) late(age time.Duration) bool { return r.within > 0 && age > r.within*3/4 }

// overdue returns an error for waste of an age that is beyond within, or nil.
func (r wasteRule) overdue(age time.Duration) error {
	if r.within == 0 || age <= r.within {
		return nil
	}
	return fmt.Errorf("the data folder holds waste of %d seconds ago; erase-within is %d", int64(age/time.Second), int64(r.within/time.Second))
}

// wasteMoments are the moments (ms) at which the oldest waste of each store became known, by the name of the
// store's file. A store without waste is not among them.
type wasteMoments map[string]int64

// append appends the record of the moments, whose key is [record.WasteKey]. now is the time in ms.
func (m wasteMoments) append(dst []byte, now int64) []byte {
	body, err := json.Marshal(m) // in ascending order of the names
	if err != nil {
		panic(err) // names and numbers: cannot fail
	}
	return record.Append(dst, record.WasteKey, record.Item{Kind: record.WasteKind, TS: now, Body: string(body)})
}

// readWaste decodes the body of the record.
func readWaste(body string) (m wasteMoments, err error) {
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return nil, fmt.Errorf("record %q: %w", record.WasteKey, err)
	}
	return m, nil
}
