package keyspace

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/eviction"
	"mayfly/keyspace/index"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/lease"
	"mayfly/keyspace/locks"
	"mayfly/keyspace/record"
	"mayfly/keyspace/replica"
	"mayfly/keyspace/storage"
	"mayfly/keyspace/tables"
	"mayfly/keyspace/watch"
	"mayfly/vfs"

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
	Reserve      int64          // bytes of the disk to hold for when it is full; 0: none
	NoPurge      bool           // do not start the active purge (tests drive it by hand)
	Stepped      bool           // the clock is moved step by step, as steps.go says; implies NoPurge
	FS           vfs.FS         // holds the data folder; nil: the system's
	Loaded       *atomic.Int64  // counts the bytes of changes that Open has loaded; nil: not counted

	// OnDeath is called once for every item that has died, when it is removed. [Tx.OnDeath] receives the
	// others. written covers the item's last write and the time of the death. The death must not be reported
	// before written is committed. OnDeath runs under the lock of a partition: it must return soon and not
	// use the keyspace. The id must be cloned to be kept.
	OnDeath func(c *Container, id string, written LSN)

	// OnShed is called when elements of a key of a kind have died and were removed, once for all that were
	// found together; gone says that the key has no others, and has gone too. The rest is as for OnDeath, but
	// a transaction reports it at its end. OnDeath is not called for such a key.
	OnShed func(c *Container, id string, kind Kind, gone bool, written LSN)

	// OnTold is called for clients that cache what they have read; see tell.go. It runs under locks: it must
	// return soon and not use the keyspace.
	OnTold func(t *Told)

	// Caches reports whether a client is to be told what has changed; nil: all are. It runs under locks: it
	// must return at once and not use the keyspace.
	Caches func(client int64) bool

	// OnLogged is called when the log of a container's deaths has more entries, has come or gone. It runs
	// under locks: it must return soon and not use the keyspace.
	OnLogged func(container string)

	// DeathsHeard reports whether OnDeath has hearers now. While it does, deaths are found when they happen,
	// to the millisecond. It must be cheap and safe for concurrent use. nil means that it has none.
	DeathsHeard func() bool

	// Replicator makes the keyspace one node of a cluster: it opens as a follower, and writes nothing by
	// itself until [Keyspace.Lead]. nil: there is no cluster.
	Replicator replica.Replicator

	preallocate   int64 // see [journal.Options]
	noCheckpoints bool  // do not make checkpoints unasked (tests drive them by hand)
	noSweeps      bool  // do not sweep unasked, likewise
}

// Fsync says when what is written is forced to disk (appendfsync).
type Fsync = journal.Policy

// The policies, named as in Redis.
const (
	EverySec = journal.EverySec // a reply means handed to the operating system; forced to disk each second
	Always   = journal.Always   // a reply means on disk
	No       = journal.No       // the operating system decides
)

// Kind is what an item is.
type Kind = record.Kind

// The kinds of items.
const (
	Document = record.Document  // a JSON object, written by DOC.*
	Plain    = record.Plain     // bytes, written by SET and its family
	HashKind = record.Hash      // fields with values, written by HSET and its family
	SetKind  = record.Set       // members, written by SADD and its family
	ZSetKind = record.SortedSet // members with scores, written by ZADD and its family
	ListKind = record.List      // entries, written by LPUSH and its family
)

// MaxIDLength is the length in bytes of the longest id.
const MaxIDLength = record.MaxIDLength

// Item is what a container holds under an id: a value, safe to keep.
type Item = record.Item

// ContainerRecord describes a container without its items.
type ContainerRecord = record.Container

// HeldError is the veto of a container on hold.
type HeldError = record.HeldError

// LSN stands for a state of the keyspace that may not be committed yet. A reply that reports or reveals it
// must not leave before [Keyspace.Wait] has returned for it. A greater LSN covers a lesser, and zero is
// always committed.
type LSN = journal.LSN

// Keyspace is the set of all containers and their items. Safe for concurrent use.
type Keyspace struct {
	storage.Service // of storage

	opt           Options
	partitions    []*partition
	locks         locks.Set // of them
	catalogue     catalogue
	storage       *storage.Engine
	journal       *journal.Journal // of storage
	purge         *expiry.Purge
	runner        *expiry.Runner
	tables        tables.Set[*Container]
	teller        teller
	keepDead      atomic.Int64 // ms; see KeepDeadUntil
	heard         atomic.Bool  // what DeathsHeard has returned last
	undo          undoState
	uncommitted   atomic.Bool  // the purge has journalled something since the last tick
	shed          atomic.Int64 // elements that have died and were removed
	evictor       eviction.Evictor[evictable, drawn]
	load          loadStats
	epoch         atomic.Uint64 // of versions; one more with every start
	applier       *applier      // of a follower, from the first batch on; used by the goroutine that calls Apply and Lead
	watchEnder    watch.Ender[*partition, *Container]
	maxContainers atomic.Int64 // 0: no limit

	lease      lease.Lease
	builder    *index.Builder
	stop       chan struct{}
	background sync.WaitGroup
	clockLog   clock.Log

	role  *replica.Role     // in a cluster; nil: there is none
	clock *clock.Replicated // that of the options, in a cluster
	wall  clock.Clock       // the one beneath, for files
	left  bool              // the folder was that of a node of a cluster
}

// Open opens the data folder, loads its content and starts the active purge and the background work. Errors
// are one clear line.
func Open(opt Options) (_ *Keyspace, err error) {
	if opt.Clock == nil {
		opt.Clock = clock.NewSystem(0)
	}
	opt.FS = vfs.Or(opt.FS)
	if opt.Partitions == 0 {
		opt.Partitions = 16
	}
	if opt.Partitions < 1 || opt.Partitions > record.MaxPartitions {
		return nil, fmt.Errorf("partitions must be 1 to %d, not %d", record.MaxPartitions, opt.Partitions)
	}
	ks := &Keyspace{opt: opt, stop: make(chan struct{})}
	ks.beginRole()
	opt = ks.opt
	ks.purge = expiry.NewPurge(max(opt.ExpireEffort, 1), opt.Clock, ks.pools)
	ks.initTeller()
	ks.evictor.Init()
	ks.watchEnder.Background = &ks.background
	if ks.role != nil {
		ks.watchEnder.Background = new(sync.WaitGroup) // transactions outlast Abandon
	}
	ks.SetMaxContainers(DefaultMaxContainers)
	defer func() {
		if err != nil && ks.storage != nil {
			ks.storage.Abandon()
		}
	}()
	begin := ks.wall.Now()
	if err := ks.restore(); err != nil {
		return nil, err
	}
	if ks.role == nil { // else the leader does it
		if err := ks.beginEpoch(); err != nil {
			return nil, err
		}
	}
	if err := datadir.LimitTorn(opt.FS, opt.Dir, begin, opt.Log); err != nil {
		opt.Log.Error().Err(err).Msg("cannot remove old ends of files")
	}
	if err := ks.beginDatabases(); err != nil {
		return nil, err
	}
	ks.background.Go(ks.storage.Scrub.Run)
	if !opt.noCheckpoints {
		ks.background.Go(ks.storage.Run)
	}
	if ks.role != nil && !opt.noSweeps {
		ks.background.Go(func() { replica.Sweep(ks.stop, ks.sweep) })
	}
	ks.background.Go(ks.builder.Run)
	if !opt.NoPurge && !opt.Stepped {
		ks.runner = expiry.NewRunner(ks.purge)
		ks.runner.Start()
	}
	return ks, nil
}

// beginEpoch forces the epoch to disk before a version of it can be seen.
func (ks *Keyspace) beginEpoch() error {
	now := ks.Now()
	ks.lease.Set(now)
	ks.appendClock(now)
	if ks.left {
		ks.journal.Append(replica.Text(aof.AppendOps(nil, replica.Removal())))
	}
	err := errors.Join(ks.journal.CommitAll(), ks.journal.Sync())
	if vfs.IsFull(err) { // nothing is written before the record, and the journal forces its first commit to disk
		return nil
	}
	return err
}

// beginDatabases completes what a start has read: see createDatabases. A follower gets that from its leader.
func (ks *Keyspace) beginDatabases() error {
	var tx Tx
	ks.lockAll(&tx)
	defer tx.Close()
	if ks.follows() {
		ks.holdTimers()
		tx.beginTimers()
		return nil
	}
	return tx.createDatabases()
}

// createDatabases makes the databases 0 to 15 that are missing, and gives numbers to containers without one.
func (tx *Tx) createDatabases() error {
	defer tx.beginTimers()
	for n := range Databases {
		tx.CreateContainer(fmt.Sprint(n), expiry.Forever, expiry.Strict)
	}
	return tx.numberRest()
}

// Close stops the background work, makes a checkpoint and releases the data folder. No transaction may run.
func (ks *Keyspace) Close() error {
	ks.endBackground()
	if ks.role == nil {
		ks.lease.Set(ks.Now()) // the checkpoint records it
	}
	return ks.storage.Close()
}

// endBackground ends the background work.
func (ks *Keyspace) endBackground() {
	if ks.runner != nil {
		ks.runner.Stop()
	}
	ks.endTeller()
	close(ks.stop)
	ks.background.Wait()
}

func (ks *Keyspace) partitionOf(id string) *partition {
	return ks.partitions[record.Partition(id, len(ks.partitions))]
}

// Now reads the clock, in ms.
func (ks *Keyspace) Now() int64 { return ks.opt.Clock.Now() }

// watchClock logs how the wall clock was set since the last call.
func (ks *Keyspace) watchClock() { ks.clockLog.Look(&ks.opt.Log) }

// ClockAhead returns how far the keyspace's time is ahead of the wall clock, which was set back.
func (ks *Keyspace) ClockAhead() time.Duration {
	if c := clock.SystemOf(ks.opt.Clock); c != nil {
		return c.Ahead()
	}
	return 0
}

// Micros reads the clock, in µs.
func (ks *Keyspace) Micros() int64 { return ks.opt.Clock.Micros() }

// SetExpireEffort changes active-expire-effort (1 to 10) while running.
func (ks *Keyspace) SetExpireEffort(effort int) { ks.purge.SetEffort(effort) }

// Stats are figures of the whole keyspace for INFO.
type Stats struct {
	storage.Stats
	Partitions     int
	Expiry         expiry.Stats
	LoadedItems    int64  // at start
	LoadTime       int64  // ms
	LastWriteError string // empty: the last write worked

	ExpiredElements int64 // that have died and were removed, since the start
}

// Stats returns the figures.
func (ks *Keyspace) Stats() Stats {
	s := Stats{
		Stats:       ks.storage.Stats(),
		Partitions:  len(ks.partitions),
		Expiry:      ks.purge.Stats(),
		LoadedItems: ks.load.items.Load(),
		LoadTime:    ks.load.took,

		ExpiredElements: ks.shed.Load(),
	}
	if err := ks.Writable(); err != nil {
		s.LastWriteError = err.Error()
	}
	return s
}
