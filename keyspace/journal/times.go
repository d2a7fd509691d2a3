package journal

import (
	"slices"
	"sync/atomic"
	"time"
)

// recentCommits is the number of commits whose times are kept.
const recentCommits = 1024

// commitTimes are the times that the newest commits took. The zero value has none. One goroutine at a time
// adds; reading is safe meanwhile.
type commitTimes struct {
	n     atomic.Int64 // commits added
	times [recentCommits]atomic.Int64
}

// add adds a commit. The lead is held.
func (c *commitTimes) add(took time.Duration) {
	n := c.n.Load()
	c.times[n%recentCommits].Store(int64(took))
	c.n.Store(n + 1)
}

// CommitTimes returns how long the last commit took, and percentiles of the last 1024: for each commit from
// the moment at which its changes were taken to the moment at which it was committed as the policy asks. All
// are 0 before the first commit.
func (j *Journal) CommitTimes(percents ...int) (last time.Duration, percentiles []time.Duration) {
	n := j.times.n.Load()
	percentiles = make([]time.Duration, len(percents))
	if n == 0 {
		return 0, percentiles
	}
	times := make([]int64, min(n, recentCommits))
	for i := range times {
		times[i] = j.times.times[i].Load()
	}
	last = time.Duration(times[(n-1)%recentCommits])
	slices.Sort(times)
	for i, percent := range percents {
		percentiles[i] = time.Duration(times[(len(times)*percent+99)/100-1])
	}
	return last, percentiles
}
