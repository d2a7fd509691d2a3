package storage

import (
	"errors"
	"sync"
	"sync/atomic"

	"mayfly/expiry"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/lease"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/replica"
	"mayfly/keyspace/store"
	"mayfly/vfs"

	"github.com/rs/zerolog"
)

// Options configure an engine.
type Options struct {
	FS         vfs.FS
	Dir        string // the data folder
	Partitions int    // of a folder that is made
	Policy     journal.Policy
	Reserve    int64 // bytes of the disk to hold for when it is full; 0: none
	Log        zerolog.Logger
	Loaded     *atomic.Int64   // counts the bytes of changes that Load has read; nil: not counted
	Now        func() int64    // reads the clock, in ms
	Tick       func()          // called each second by Run
	Stop       <-chan struct{} // closed to end what runs in the background

	Preallocate int64 // see [journal.Options]

	Role *replica.Role // of a node of a cluster; nil: there is none
	Next func() uint32 // all containers have lesser numbers; needed with a role

	// The following change while a test runs, with the engine locked. Open sets them.
	Piece   int    // items captured while a partition stays locked
	Between func() // called between two pieces: lets others run
	Pace    int64  // of compactions and backups, bytes a second; 0: they do not rest
	Least   int64  // the least size of the journal at which a checkpoint is due, in bytes
}

// Partition is the items of a partition in memory, and the lock that protects them.
type Partition struct {
	Lock  sync.Locker
	Shard *memtable.Shard
}

// Memory is what the engine reads of the keyspace in memory besides its partitions. The methods lock what
// they need. The engine holds no lock of a partition.
type Memory interface {
	// Clock returns the record of the clock at the end of its lease.
	Clock() lease.Record

	// Touch appends a record to the journal that changes nothing.
	Touch() error

	// Changes returns the changes of the catalogue since the last call, as of one moment or later, with the
	// clock, and the tables of containers that were dropped since.
	Changes() ([]aof.Op, []Dropped)

	// Records returns all records of the catalogue, with the clock; deletes of containers that were dropped
	// meanwhile are among them.
	Records() []aof.Op

	// Purgeable returns the limits of the items that are gone for good, by the number of their container,
	// each as of a moment during the call.
	Purgeable() map[uint32]expiry.Limits
}

// Dropped is the table of a dropped container in a partition: the store may have items of it.
type Dropped struct {
	Partition int
	Table     *memtable.Table
}

// Engine keeps the files of a data folder. Safe for concurrent use.
type Engine struct {
	Options Options
	Journal *journal.Journal // from Begin on
	Disk    *DiskGuard
	Scrub   *Scrubber
	files   *fileSet // from Begin on; Lock protects it

	folder     *datadir.Dir
	manifest   *datadir.Manifest  // of the last run, until Begin
	finished   []journal.FileInfo // journals of former runs, until Begin
	lastLSN    journal.LSN        // of those
	memory     Memory
	partitions []Partition
	catalogue  *store.Store
	seed       [16]byte              // see Seed
	seedKept   bool                  // the folder has it
	items      []*store.Store        // by partition
	broken     atomic.Pointer[error] // why a store cannot be used any more; nil while all can
	wake       chan struct{}         // a checkpoint is wanted
	full       chan struct{}         // a checkpoint may be due

	mu         sync.Mutex // see Lock
	dropped    bool       // see Drop; the lock protects it
	checkpoint checkpointState
	compaction compactionState
	waste      wasteState
}

// Lock waits for the checkpoint or the compaction that runs, and keeps others from beginning: the files do
// not change but for the journal.
func (e *Engine) Lock() { e.mu.Lock() }

// Unlock ends Lock.
func (e *Engine) Unlock() { e.mu.Unlock() }

// Partitions returns the number of partitions of the folder.
func (e *Engine) Partitions() int { return e.folder.Partitions }

// Store returns the store of a partition.
func (e *Engine) Store(partition int) *store.Store { return e.items[partition] }

// Stores returns the catalogue's store and those of all partitions, in this order.
func (e *Engine) Stores() []*store.Store { return append([]*store.Store{e.catalogue}, e.items...) }

// Err returns why nothing can be committed, or nil.
func (e *Engine) Err() error {
	if err := e.broken.Load(); err != nil {
		return *err
	}
	return e.Journal.Err()
}

// noteBroken refuses writes until a restart if a store cannot be used any more: the journal would grow
// without bound.
func (e *Engine) noteBroken() {
	for _, s := range e.Stores() {
		if err := s.Broken(); err != nil {
			e.broken.Store(&err)
			return
		}
	}
}

// Close makes a checkpoint and closes the files and the folder. Nothing may run in the background.
func (e *Engine) Close() error {
	if !e.Journal.Begun() { // the disk is full, and nothing was written
		return e.Abandon()
	}
	if err := errors.Join(e.Save(), e.closeFiles()); err != nil {
		return errors.Join(err, e.folder.Close())
	}
	return errors.Join(e.files.writeManifest(true), e.folder.Close())
}

// Abandon closes the files and the folder without a checkpoint.
func (e *Engine) Abandon() error { return errors.Join(e.closeFiles(), e.folder.Close()) }

// closeFiles commits what waits, forces it to disk and closes the files.
func (e *Engine) closeFiles() error {
	var errs []error
	if e.Journal != nil {
		errs = append(errs, e.Journal.Close())
	}
	for _, s := range append(e.items, e.catalogue) {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	if e.Disk != nil {
		errs = append(errs, e.Disk.Close())
	}
	return errors.Join(errs...)
}

// signal sends unless the channel is full.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// AllowUndo raises the version of the folder to the one in which containers may be set aside, durably.
func (e *Engine) AllowUndo() error { return e.folder.AllowUndo() }

// AllowReplicas raises the version of the folder to the one in which it may be that of a node of a cluster,
// durably.
func (e *Engine) AllowReplicas() error { return e.folder.AllowReplicas() }

// AllowLogs raises the version of the folder to the one in which containers may have logs of deaths, of what
// clients delete too if deletes is set, durably.
func (e *Engine) AllowLogs(deletes bool) error { return e.folder.AllowLogs(deletes) }

// AllowCollections raises the version of the folder to the one in which items may have elements, durably.
func (e *Engine) AllowCollections() error { return e.folder.AllowCollections() }

// CollectionsAllowed reports whether AllowCollections has nothing to do.
func (e *Engine) CollectionsAllowed() bool { return e.folder.CollectionsAllowed() }
