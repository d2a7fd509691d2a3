package waste

import (
	"fmt"
	"time"
)

// MinWithin is the shortest time of erase-within besides 0. A checkpoint, a compaction and their repetition fit into it.
const MinWithin = 10 * time.Minute

// Without erase-within the age of waste grows with the stores, so that compactions by age rewrite at most bytesPerSecond on
// average.
const (
	minAge         = 5 * time.Minute
	maxAge         = 24 * time.Hour
	bytesPerSecond = 256 << 10
)

// ends is how long cut-off ends of files are kept without erase-within.
const ends = 30 * 24 * time.Hour

// Rule says how long waste may stay in files.
type Rule struct {
	// Within is erase-within: what is gone is in no file of the data folder after this time. 0 promises nothing.
	Within time.Duration
	// Never says that stores are not compacted by age without Within.
	Never bool
}

// Age returns the age at which the waste of a store is due, if all stores have this many bytes; false for no age. Half of
// Within is left for the purge, the checkpoint and the compaction.
func (r Rule) Age(bytes int64) (time.Duration, bool) {
	switch {
	case r.Within > 0:
		return r.Within / 2, true
	case r.Never:
		return 0, false
	}
	seconds := min(bytes/bytesPerSecond+1, int64(maxAge/time.Second))
	return max(time.Duration(seconds)*time.Second, minAge), true
}

// EndAge returns the age at which an end of a file is due that a start has cut off. What it holds was written before the
// cut.
func (r Rule) EndAge() time.Duration {
	if r.Within > 0 {
		return r.Within / 2
	}
	return ends
}

// Late reports whether waste of an age endangers Within, so that its compaction must not rest.
func (r Rule) Late(age time.Duration) bool { return r.Within > 0 && age > r.Within*3/4 }

// Overdue returns an error for waste of an age that is beyond Within, or nil.
func (r Rule) Overdue(age time.Duration) error {
	if r.Within == 0 || age <= r.Within {
		return nil
	}
	return fmt.Errorf("the data folder holds waste of %d seconds ago; erase-within is %d", int64(age/time.Second), int64(r.Within/time.Second))
}
