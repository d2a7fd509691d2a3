package expiry

import "time"

// Stats are the counters of expiry since the start, for INFO's section Expiry.
//
// StaleShare is a running average over slow cycles: the share of dead items that the pools estimate.
type Stats struct {
	RemovedLazily   int64         // dead items removed by transactions that met them
	RemovedActively int64         // dead items removed by the purge
	Sampled         int64         // items the purge has looked at
	Cycles          int64         // slow and fast, and those of timers
	TimeSpent       time.Duration // in cycles, at work
	LongestCycle    time.Duration // at work
	StaleShare      float64       // estimated share of dead items among those in memory that can die, 0 to 1
	CapReached      int64         // cycles that ended because their time was up
}
