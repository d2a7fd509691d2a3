package keyspace

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/record"

	"github.com/rs/zerolog"
)

// Options configure a keyspace. The zero value of each field but Dir works.
type Options struct {
	Dir          string         // the data folder; created if missing
	Partitions   int            // 1 to 256; 0 means 16; fixed when the folder is made
	Fsync        Fsync          // when what is written is forced to disk; the zero value is EverySec
	Clock        clock.Clock    // nil means the system's
	Log          zerolog.Logger // progress and trouble; the zero value is silent
	ExpireEffort int            // active-expire-effort, 1 to 10; 0 means 1
	NoPurge      bool           // do not start the active purge (tests drive it by hand)

	// OnDeath is called once for every item that has died, when it is removed, but for those of which
	// [Tx.OnDeath] tells. written covers the item's last write and that it is as late as that: unless it
	// is committed nobody must hear of the death. It runs under the lock of a partition: it must return
	// soon and not use the keyspace. The id must be cloned to be kept.
	OnDeath func(c *Container, id string, written LSN)
}

// Fsync says when what is written is forced to disk (appendfsync).
type Fsync int32

// The policies, named as in Redis.
const (
	EverySec Fsync = iota // a reply means handed to the operating system; forced to disk each second
	Always                // a reply means on disk
	No                    // the operating system decides
)

// Kind is what an item is.
type Kind = record.Kind

// The kinds of items.
const (
	Document = record.Document // a JSON object, written by DOC.*
	Plain    = record.Plain    // bytes, written by SET and its family
)

// MaxIDLength is the length in bytes of the longest id.
const MaxIDLength = record.MaxIDLength

// Item is what a container holds under an id: a value, safe to keep.
type Item = record.Item

// ContainerRecord is what is known of a container without its items.
type ContainerRecord = record.Container

// LSN stands for a state of the keyspace that may not be committed yet: a reply that reports or
// reveals it must not leave before [Keyspace.Wait] has returned for it. LSNs are ordered; the
// greater covers the lesser. The zero LSN is always committed.
type LSN uint64

// Keyspace is the set of all containers and what they hold. Safe for concurrent use.
type Keyspace struct {
	opt        Options
	folder     *dataDir
	partitions []*partition
	catalogue  catalogue
	journal    *journal
	catStore   *store
	purge      *expiry.Purge
	runner     *expiry.Runner
	tables     tableList
	evictAt    atomic.Uint32 // position in tables where the next round of eviction begins
	load       loadStats
	epoch      uint64 // of versions; one more with every start

	broken     atomic.Pointer[error] // why a store cannot be used any more; nil while all can
	promise    promise
	wake       chan struct{} // a checkpoint is to be made
	full       chan struct{} // it is to be looked at whether one is due
	stop       chan struct{}
	background sync.WaitGroup
	fold       folding
	compacting compacting
}

// Open opens the data folder, loads what it holds and starts the active purge and the background
// work. Errors are one clear line.
func Open(opt Options) (_ *Keyspace, err error) {
	if opt.Clock == nil {
		opt.Clock = clock.NewSystem(0)
	}
	if opt.Partitions == 0 {
		opt.Partitions = 16
	}
	if opt.Partitions < 1 || opt.Partitions > record.MaxPartitions {
		return nil, fmt.Errorf("partitions must be 1 to %d, not %d", record.MaxPartitions, opt.Partitions)
	}
	ks := &Keyspace{opt: opt, wake: make(chan struct{}, 1), full: make(chan struct{}, 1), stop: make(chan struct{})}
	ks.SetCompaction(DefaultCompaction)
	ks.fold.least, ks.fold.pieces, ks.compacting.pace = minCheckpointBytes, captureInPieces, compactionPace
	defer func() {
		if err != nil {
			ks.release()
		}
	}()
	begin := ks.Now()
	if err := ks.restore(); err != nil {
		return nil, err
	}
	ks.purge = expiry.NewPurge(max(opt.ExpireEffort, 1), ks.pools)
	if err := ks.beginEpoch(); err != nil {
		return nil, err
	}
	if err := limitTorn(opt.Dir, begin, opt.Log); err != nil {
		opt.Log.Error().Err(err).Msg("cannot clear old ends of files away")
	}
	ks.createDatabases()
	ks.background.Add(1)
	go ks.runCheckpoints()
	if !opt.NoPurge {
		ks.runner = expiry.NewRunner(ks.purge)
		ks.runner.Start()
	}
	return ks, nil
}

// beginEpoch has the epoch on disk before a version of it can be seen.
func (ks *Keyspace) beginEpoch() error {
	now := ks.Now()
	ks.setPromise(now)
	ks.journal.append(appendSet(nil, record.ClockKey, record.View(ks.clockRecord(now))))
	return errors.Join(ks.journal.commitAll(), ks.journal.sync())
}

// createDatabases makes the databases 0 to 15 that are missing.
func (ks *Keyspace) createDatabases() {
	var tx Tx
	ks.lockAll(&tx)
	for n := range Databases {
		tx.CreateContainer(fmt.Sprint(n), expiry.Forever, expiry.Strict)
	}
	tx.Close()
}

// Close stops the background work, commits and forces all to disk and releases the data folder.
// No transaction may be running or begun.
func (ks *Keyspace) Close() error {
	if ks.runner != nil {
		ks.runner.Stop()
	}
	close(ks.stop)
	ks.background.Wait()
	ks.setPromise(ks.Now()) // which the checkpoint writes down
	return errors.Join(ks.checkpoint(), ks.release())
}

// Halt commits all that has been written and forces it to disk, for a process that is to end although
// transactions still run: the next start replays the journal. Nothing else can be done with the
// keyspace afterwards.
func (ks *Keyspace) Halt() error { return errors.Join(ks.journal.commitAll(), ks.journal.sync()) }

// release closes files and lets go of the folder.
func (ks *Keyspace) release() error {
	var errs []error
	if ks.journal != nil {
		errs = append(errs, ks.journal.close())
	}
	for _, p := range ks.partitions {
		if p.store != nil {
			errs = append(errs, p.store.close())
		}
	}
	if ks.catStore != nil {
		errs = append(errs, ks.catStore.close())
	}
	if ks.folder != nil {
		errs = append(errs, ks.folder.close())
	}
	return errors.Join(errs...)
}

func (ks *Keyspace) partitionOf(id string) *partition {
	return ks.partitions[record.Partition(id, len(ks.partitions))]
}

// Wait returns once what the ticket stands for is committed as the fsync policy asks: its group may
// be committed by this call, together with everybody else's pending work. The error says why it
// could not be; nothing is lost then, it is tried again.
func (ks *Keyspace) Wait(t LSN) error { return ks.journal.wait(t) }

// CommitNow is Wait for a goroutine that has gathered the work of many itself, and that many wait for: where
// Wait first lets others run, who may add theirs, but may also be at something that takes its time, it
// commits at once.
func (ks *Keyspace) CommitNow(t LSN) error { return ks.journal.waitAfter(func() {}, t) }

// maxWaiting is how many bytes may wait to be committed before whoever wants to write helps first.
const maxWaiting = 32 << 20

// Throttle is called before a transaction that may write begins. It keeps bounded what waits to be
// committed, however little clients send to have much written: while there is much of it, it commits.
// An error is not its business: writes are refused then, see Writable.
func (ks *Keyspace) Throttle() {
	if ks.journal.waiting.Load() > maxWaiting {
		_ = ks.journal.wait(ks.journal.last())
	}
}

// Committed tells whether what the ticket stands for is committed.
func (ks *Keyspace) Committed(t LSN) bool { return t <= ks.journal.committed() }

// Writable returns nil, or the error because of which writes are refused for now (MISCONF).
func (ks *Keyspace) Writable() error {
	if err := ks.broken.Load(); err != nil {
		return *err
	}
	return ks.journal.err()
}

// Now reads the clock, in ms.
func (ks *Keyspace) Now() int64 { return ks.opt.Clock.Now() }

// Micros is the same in µs.
func (ks *Keyspace) Micros() int64 { return ks.opt.Clock.Micros() }

// SetFsync changes the fsync policy while running.
func (ks *Keyspace) SetFsync(f Fsync) { ks.journal.setFsync(f) }

// SetExpireEffort changes active-expire-effort (1 to 10) while running.
func (ks *Keyspace) SetExpireEffort(effort int) { ks.purge.SetEffort(effort) }

// Stats are figures of the whole keyspace for INFO.
type Stats struct {
	Partitions int
	Expiry     expiry.Stats

	LoadedItems    int64 // at start
	LoadTime       int64 // ms
	JournalBytes   int64 // size of the journal files
	StoreBytes     int64 // size of the partition files and the catalogue
	Commits        int64 // groups committed
	Fsyncs         int64 // of the journal
	Checkpoints    int64
	Saving         bool   // SaveInBackground is at work
	LastSaveError  string // empty: the last checkpoint worked
	Compactions    int64  // of stores
	Compacting     bool   // a compaction is running or asked for
	LiveBytes      int64  // of the stores, without what is overwritten or deleted
	LastCompactErr string // empty: the last compaction worked
	LastWriteError string // empty: the last write worked
}

// Stats gives the figures.
func (ks *Keyspace) Stats() Stats {
	s := Stats{
		Partitions:   len(ks.partitions),
		Expiry:       ks.purge.Stats(),
		LoadedItems:  ks.load.items.Load(),
		LoadTime:     ks.load.took,
		JournalBytes: ks.journal.size(),
		Commits:      ks.journal.commits.Load(),
		Fsyncs:       ks.journal.fsyncs.Load(),
		Checkpoints:  ks.fold.done.Load(),
		Saving:       ks.fold.asked.Load(),
		Compactions:  ks.compacting.done.Load(),
		Compacting:   ks.compacting.underWay(),

		LastSaveError:  noted(&ks.fold.failed),
		LastCompactErr: noted(&ks.compacting.failed),
	}
	s.LiveBytes, s.StoreBytes = sizes(ks.stores())
	if err := ks.Writable(); err != nil {
		s.LastWriteError = err.Error()
	}
	return s
}
