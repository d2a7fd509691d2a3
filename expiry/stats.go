package expiry

import "time"

// Stats are the counters of expiry since the start, for INFO's section Expiry.
type Stats struct {
	RemovedLazily   int64         // dead items removed by whoever met them
	RemovedActively int64         // dead items removed by the purge
	Sampled         int64         // items the purge has drawn
	Cycles          int64         // slow and fast cycles run
	TimeSpent       time.Duration // in cycles
	LongestCycle    time.Duration
	StaleShare      float64 // estimated share of dead among the mortal items in memory, 0 to 1
	CapReached      int64   // cycles that ended because their time was up
}
