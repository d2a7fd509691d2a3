package journal

import (
	"cmp"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/vfs"

	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"
)

// LSN is a log sequence number: the number of a commit. Zero is always committed.
type LSN uint64

// Policy says when commits are forced to disk (appendfsync).
type Policy int32

// The policies, named as in Redis.
const (
	EverySec Policy = iota // committed means handed to the operating system; forced to disk each second
	Always                 // committed means on disk
	No                     // the operating system decides
)

const (
	syncInterval  = time.Second     // of EverySec
	slowSync      = 2 * time.Second // a background fsync that takes longer holds commits up
	firstRetry    = 20 * time.Millisecond
	longestRetry  = 2 * time.Second
	keptBatchSize = 4 << 20 // bytes; larger buffers are not kept for reuse
)

var errClosed = errors.New("the journal is closed")

// headSize is the size in bytes of the seal that a file begins with. It is on disk before anything follows,
// so the file's mark is known even if the first commit is torn.
var headSize = aof.SealSize

// Changes is what one transaction changes.
type Changes interface {
	// AppendTo appends the changes as set and del commands. It is called once, by [Journal.Append].
	AppendTo(dst aof.Commands) aof.Commands
}

// Room makes room on a full disk. Safe for concurrent use.
type Room interface {
	// Releases counts how often room was made.
	Releases() uint64
	// MakeRoom reports whether room was made, by this call or another, since Releases returned that number
	// before the write that met the full disk. If so, the write is repeated at once.
	MakeRoom(since uint64) bool
}

// Options configure a journal.
type Options struct {
	FS       vfs.FS
	Dir      string
	Finished []FileInfo // what [Replay] has read
	First    LSN        // of the first commit
	Policy   Policy
	Log      zerolog.Logger
	Full     func() // called without any lock after a commit that leaves [Journal.Limit] bytes in the newest file
	Room     Room   // nil: none can be made
	// Around is called with the function that makes the first file, and returns its error. After an error it
	// is called again before the next commit. If it is not nil, [Journal.Begin] makes the file instead of
	// [Open].
	Around func(makeFile func() error) error

	// Preallocate is how many bytes of zeros are written behind the last commit at a time, with the policy
	// [Always]; less than 0: none. 0 means 1 MiB.
	Preallocate int64
	Replication *Replication // nil: there is none
}

// Journal commits in groups. Safe for concurrent use, but for Rotate, Remove and Close, which one goroutine
// calls.
//
// One goroutine at a time leads: it alone commits. The lead is held without the mutex.
type Journal struct {
	surroundings
	policy atomic.Int32 // Policy
	limit  atomic.Int64 // bytes

	reached
	counts
	batches
	newest
	finished []FileInfo // the files before the newest, oldest first; replaced as [newest] says

	stop       chan struct{}
	background sync.WaitGroup
}

// surroundings are what the [Options] give, and do not change.
type surroundings struct {
	fs     vfs.FS
	dir    string
	ahead  int64 // Preallocate
	log    zerolog.Logger
	full   func()
	room   Room
	around func(makeFile func() error) error
	repl   *Replication
}

// reached is how far commits have come, and what keeps them.
type reached struct {
	done   atomic.Uint64         // everything up to this LSN is committed as the policy asks
	synced atomic.Uint64         // everything up to this LSN is on disk
	logged atomic.Uint64         // the log of the cluster has everything of this leader up to this LSN
	slow   atomic.Bool           // a background fsync takes too long
	fault  atomic.Pointer[error] // of the last write; nil: it worked
	broken atomic.Pointer[error] // of an fsync, or of replication: final
}

type counts struct {
	commits, fsyncs atomic.Int64
	times           commitTimes
	total           atomic.Int64 // bytes of all files
	waiting         atomic.Int64 // bytes that are appended but not committed
}

// batches are the commits to come, and who makes them.
type batches struct {
	mu       sync.Mutex // protects what follows; held for moments only
	next     LSN        // of the next batch
	pending  *batch     // receives appended changes; nil while empty
	failed   *batch     // its write failed and is repeated, before pending
	inFlight *batch     // is being committed
	spare    [][]byte   // buffers for the next batches, two at most: no more are in use at a time
	leading  bool       // a goroutine leads
	queue    []chan struct{}
	retrying bool
	closed   bool
}

// newest is the newest file. It is replaced with the lead and syncMu held: either is enough to use it.
type newest struct {
	file       *aof.File
	generation uint64
	mark       uint32
	diskFull   bool        // no more preallocation in it
	first      uint64      // the generation of the first file of this run
	begun      atomic.Bool // the first file is in use; set with the lead held
	step       vfs.Step    // of the lead's holder on disk
	force      bool        // the first commit is to be forced to disk whatever the policy; the lead is held
	syncMu     sync.Mutex  // held during an fsync
	forced     singleflight.Group
	end        atomic.Int64 // bytes written
	onDisk     atomic.Int64 // bytes that an fsync has forced to disk
}

// Open starts a journal in a new file, which [Journal.Begin] makes if Around of the options is not nil.
func Open(opt Options) (*Journal, error) {
	j := &Journal{
		surroundings: surroundings{
			fs: opt.FS, dir: opt.Dir, ahead: cmp.Or(opt.Preallocate, defaultPreallocate), log: opt.Log,
			full: opt.Full, room: opt.Room, around: opt.Around, repl: opt.Replication,
		},
		batches:  batches{next: max(opt.First, 1)},
		finished: opt.Finished, stop: make(chan struct{}),
	}
	j.policy.Store(int32(opt.Policy))
	j.limit.Store(1 << 62)
	j.done.Store(uint64(j.next - 1))
	j.synced.Store(uint64(j.next - 1))
	j.first = 1
	for _, f := range opt.Finished {
		j.total.Add(f.Size)
		j.first = f.Generation + 1
	}
	if opt.Around == nil {
		if err := j.firstFile(); err != nil {
			return nil, err
		}
		j.begun.Store(true)
	}
	j.background.Go(j.syncEachSecond)
	return j, nil
}

// Begin makes the first file. On a full disk the journal then refuses to commit, and tries again by itself.
// The first commit is forced to disk whatever the policy.
func (j *Journal) Begin() error {
	j.lead()
	defer j.resign()
	j.force = true
	return j.begin()
}

// begin makes the first file if there is none yet. The lead is held.
func (j *Journal) begin() error {
	if j.begun.Load() {
		return nil
	}
	if err := j.broken.Load(); err != nil && *err == errClosed {
		return errClosed // nothing is made any more
	}
	j.step.Begin(clock.Monotonic(), 0)
	defer j.step.End()
	err := j.around(func() error {
		j.syncMu.Lock()
		defer j.syncMu.Unlock()
		if j.file != nil {
			return nil
		}
		return j.firstFile()
	})
	if err == nil {
		j.begun.Store(true)
	}
	j.report(err)
	return err
}

// Begun reports whether the first file is in use. Nothing was committed before.
func (j *Journal) Begun() bool { return j.begun.Load() }

// Append adds changes to the pending batch, and returns the LSN to wait for. The changes are committed
// entirely or not at all. Append never blocks on the disk.
func (j *Journal) Append(c Changes) LSN {
	j.mu.Lock()
	defer j.mu.Unlock()
	b := j.pending
	if b == nil {
		b = j.newBatchLocked()
	} else if b.done {
		panic("journal: a change joins a batch that is committed")
	}
	before := b.commands.Size()
	b.commands = c.AppendTo(b.commands) // after a panic the batch is as it was
	j.waiting.Add(b.commands.Size() - before)
	return b.lsn
}

// newBatchLocked begins the pending batch. j.mu must be held.
func (j *Journal) newBatchLocked() *batch {
	b := &batch{lsn: j.next}
	if last := len(j.spare) - 1; last >= 0 {
		b.commands.Text, j.spare = j.spare[last][:0], j.spare[:last]
	}
	j.next++
	j.pending = b
	return b
}

// Committed returns the LSN up to which everything is committed.
func (j *Journal) Committed() LSN { return LSN(j.done.Load()) }

// Last returns the last LSN that Append has returned.
func (j *Journal) Last() LSN {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.next - 1
}

// Full returns the last LSN whose batch receives no more changes.
func (j *Journal) Full() LSN {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.pending != nil {
		return j.pending.lsn - 1
	}
	return j.next - 1
}

// Err returns why writes must be refused, or nil: the last write failed, or an fsync has failed.
func (j *Journal) Err() error {
	if err := j.broken.Load(); err != nil {
		return *err
	}
	if err := j.fault.Load(); err != nil {
		return *err
	}
	return nil
}

// Hangs reports whether the disk takes longer than some time for what commits wait for, and than a very slow
// disk does.
func (j *Journal) Hangs(longest time.Duration) bool { return j.step.Hangs(clock.Monotonic(), longest) }

// SetLimit sets how many bytes the newest file may have before Full of the options is called.
func (j *Journal) SetLimit(bytes int64) { j.limit.Store(bytes) }

// Limit returns the limit in bytes.
func (j *Journal) Limit() int64 { return j.limit.Load() }

// Size returns the size of all files in bytes, without preallocated zeros.
func (j *Journal) Size() int64 { return j.total.Load() }

// Waiting returns the number of bytes that are appended but not committed.
func (j *Journal) Waiting() int64 { return j.waiting.Load() }

// Empty reports whether nothing was appended since the newest file was made.
func (j *Journal) Empty() bool {
	return j.waiting.Load() == 0 && j.end.Load() == headSize // in this order: bytes move from waiting to end
}

// Idle reports whether nothing is in the files and nothing waits.
func (j *Journal) Idle() bool { return j.Size()+j.Waiting() <= headSize }

// Commits returns the number of commits since the start.
func (j *Journal) Commits() int64 { return j.commits.Load() }

// Fsyncs returns the number of fsyncs since the start.
func (j *Journal) Fsyncs() int64 { return j.fsyncs.Load() }

// Close commits what waits, forces it to disk and closes the file.
func (j *Journal) Close() error {
	close(j.stop)
	j.background.Wait()
	j.lead()
	defer j.resign()
	if !j.begun.Load() { // the disk is full, and nothing was acknowledged
		j.mu.Lock()
		defer j.mu.Unlock()
		j.closed = true
		if j.file != nil {
			return j.file.Close()
		}
		return nil
	}
	err := j.commitTo(j.Last(), 0)
	j.syncMu.Lock()
	err = errors.Join(err, j.endFileLocked())
	j.syncMu.Unlock()
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	return errors.Join(err, j.file.Close())
}
