package storage

import (
	"runtime"
	"sync"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/lease"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
	"mayfly/vfs"

	"github.com/rs/zerolog"
)

// noContainers is a [Memory] and a [Loader] without containers.
type noContainers struct{}

func (noContainers) Clock() lease.Record { return lease.NewRecord(1, 1) }
func (noContainers) Touch() error        { return nil }

func (m noContainers) Changes() ([]aof.Op, []Dropped) { return m.Records(), nil }

func (m noContainers) Records() []aof.Op {
	return []aof.Op{{Key: record.ClockKey, Rec: string(m.Clock())}}
}

func (noContainers) Purgeable() map[uint32]expiry.Limits { return nil }

func (noContainers) Catalogue(string, string, bool, bool) error { return nil }
func (noContainers) Table(int, record.Key) *memtable.Table      { return nil }

// open opens an empty folder with one partition.
func open(t *testing.T) *Engine {
	t.Helper()
	return openOn(t, vfs.OS, t.TempDir())
}

// openOn is open for a folder of a disk.
func openOn(t *testing.T, fsys vfs.FS, dir string) *Engine {
	t.Helper()
	e, err := Open(Options{
		FS: fsys, Dir: dir, Partitions: 1, Log: zerolog.Nop(), Now: func() int64 { return 1 }, Tick: runtime.Gosched, Stop: make(chan struct{}),
	})
	drill.Check(t, err)
	p := Partition{Lock: new(sync.Mutex), Shard: &memtable.Shard{SetSize: aof.SetSize}}
	if _, err := e.Load([]Partition{p}, noContainers{}, noContainers{}); err != nil {
		t.Fatal(err)
	}
	drill.Check(t, e.Begin())
	e.Journal.Append(noContainers{}.Clock())
	drill.Check(t, e.Journal.CommitAll())
	t.Cleanup(func() {
		drill.Report(t, e.Close())
	})
	return e
}
