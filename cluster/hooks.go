//go:build hooks

package cluster

import (
	"os"
	"strconv"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// slowVariable is the number of bytes a second that the disk with the raft log takes.
const slowVariable = "TEST_SLOW_DISK"

// slowLog is a raft log on a slow disk.
type slowLog struct {
	raftLog
	rate int // bytes a second
}

// slowed returns the log on a disk as slow as a test wants it.
func slowed(log raftLog) raftLog {
	if rate, err := strconv.Atoi(os.Getenv(slowVariable)); err == nil && rate > 0 {
		return slowLog{log, rate}
	}
	return log
}

func (l slowLog) Save(hs *raftpb.HardState, entries []*raftpb.Entry, snap *raftpb.Snapshot) error {
	bytes := 0
	for _, e := range entries {
		bytes += len(e.GetData())
	}
	time.Sleep(time.Duration(bytes) * time.Second / time.Duration(l.rate))
	return l.raftLog.Save(hs, entries, snap)
}
