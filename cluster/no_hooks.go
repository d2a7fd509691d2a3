//go:build !hooks

package cluster

// slowed returns the log as it is: only builds for tests have slow disks.
func slowed(log raftLog) raftLog { return log }
