package expiry

import "time"

// Stats are the counters of expiry since the start, for INFO's section Expiry.
//
// StaleShare is a running average of what slow cycles find in their first samples of each pool. With
// pools that draw by [Spread] it is about twice the true share, because they look next at what they
// have not looked at for longest.
type Stats struct {
	RemovedLazily   int64         // dead items removed by whoever met them
	RemovedActively int64         // dead items removed by the purge
	Sampled         int64         // items the purge has drawn
	Cycles          int64         // slow and fast cycles run
	TimeSpent       time.Duration // in cycles, at work
	LongestCycle    time.Duration // at work
	StaleShare      float64       // estimated share of dead among the mortal items in memory, 0 to 1
	CapReached      int64         // cycles that ended because their time was up
}
