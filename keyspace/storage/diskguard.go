package storage

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"mayfly/vfs"

	"github.com/rs/zerolog"
)

// DiskGuard decides what a folder may write while its disk is full. Safe for concurrent use.
type DiskGuard struct {
	fs      vfs.FS
	dir     string
	log     zerolog.Logger
	reserve *reserve
	journal guardedJournal // set by Begin, before anything is written
	wake    func()

	mu       sync.Mutex    // held by MakeRoom
	releases atomic.Uint64 // see Releases

	full      atomic.Bool
	allowance atomic.Int64 // bytes of the journal up to which writes that free space are admitted
}

// The parts of the reserve: the journal, and so what a checkpoint writes, is at most journalShare of it, and
// writes that free space take at most freeingShare between two checkpoints. The rest is for compactions.
const (
	journalShare = 2
	freeingShare = 8
)

var (
	errFull = fmt.Errorf("%w; only commands that free space are served until there is room", syscall.ENOSPC)
	errUsed = fmt.Errorf("%w, and the reserve for commands that free space is used up", syscall.ENOSPC)
)

// newDiskGuard opens the reserve of a folder and fills it. On a full disk it releases it. wake asks for a
// checkpoint soon; locks may be held.
func newDiskGuard(fsys vfs.FS, dir string, size int64, log zerolog.Logger, wake func()) (*DiskGuard, error) {
	g := &DiskGuard{fs: fsys, dir: dir, log: log, wake: wake}
	var err error
	if g.reserve, err = openReserve(fsys, dir, size); err != nil {
		return nil, err
	}
	err = g.reserve.fill()
	if !vfs.IsFull(err) {
		return g, err
	}
	g.full.Store(true)
	if _, err := g.reserve.Release(g.reserve.last()); err != nil {
		return nil, err
	}
	if free, _, err := fsys.Room(dir); err == nil && free < g.reserve.last() {
		g.releaseAll()
	}
	log.Error().Err(syscall.ENOSPC).Int64("reserve", g.reserve.Size()).Str("dir", dir).
		Msg("the disk is full: writes are refused until it has room for the reserve")
	return g, nil
}

// guardedJournal is the journal of the folder.
type guardedJournal interface {
	Begin() error
	Err() error     // why nothing can be committed
	Size() int64    // bytes in its files
	Waiting() int64 // bytes that are not in a file yet
}

// Begin begins the journal, or leaves that to the journal while the disk is full.
func (g *DiskGuard) Begin(j guardedJournal) error {
	g.journal = j
	g.allowFreeing()
	err := j.Begin()
	if vfs.IsFull(err) && g.releaseAll() {
		err = j.Begin()
	}
	if !vfs.IsFull(err) {
		return err
	}
	g.log.Error().Err(err).Msg("the disk has no room for a journal: nothing can be written until it has")
	return nil
}

// Save makes a checkpoint, with the reserve if the disk is full. freeable returns how many bytes the folder
// would be smaller without what is overwritten and deleted: the last part of the reserve is only for a
// checkpoint that helps.
func (g *DiskGuard) Save(save func() error, freeable func() int64) error {
	since := g.Releases()
	err := save()
	for vfs.IsFull(err) && (!g.Full() || freeable() > g.Size()) && g.MakeRoom(since) {
		since = g.Releases()
		err = save()
	}
	if err == nil && g.Full() {
		g.allowFreeing()
	}
	return err
}

func (g *DiskGuard) journalBytes() int64 { return g.journal.Size() + g.journal.Waiting() }

// allowFreeing sets how far writes that free space may extend the journal from now on.
func (g *DiskGuard) allowFreeing() {
	g.allowance.Store(g.journalBytes() + g.reserve.Size()/freeingShare)
}

// Releases counts how often MakeRoom has released room.
func (g *DiskGuard) Releases() uint64 { return g.releases.Load() }

// MakeRoom releases the reserve because a write that began at that count of Releases has met a full disk. It
// reports whether room was made since then. The last part goes when the rest is used up, as another program
// may do: of writes that meet the full disk at the same time, only the first releases something. Locks may be
// held.
func (g *DiskGuard) MakeRoom(since uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.releases.Load() != since {
		return true
	}
	freed, err := g.reserve.Release(g.reserve.last())
	if freed == 0 && err == nil {
		freed, err = g.reserve.Release(0)
	}
	if err != nil {
		g.log.Error().Err(err).Msg("cannot release the reserve")
	}
	if freed == 0 {
		return false
	}
	g.releases.Add(1)
	g.allowFreeing()
	if !g.full.Swap(true) {
		g.log.Error().Err(syscall.ENOSPC).Int64("released", freed).Str("dir", g.dir).
			Msg("the disk is full: the reserve is released, and only commands that free space are served until there is room")
	}
	g.wake()
	return true
}

// releaseAll releases the reserve with its last part, and reports whether that has made room.
func (g *DiskGuard) releaseAll() bool {
	freed, err := g.reserve.Release(0)
	if err != nil {
		g.log.Error().Err(err).Msg("cannot release the reserve")
	}
	return freed > 0
}

// Refill fills the reserve after a full disk, if there is room again, and admits all writes.
func (g *DiskGuard) Refill() {
	if !g.Full() || g.journal.Err() != nil {
		return
	}
	switch err := g.reserve.fill(); {
	case err == nil:
		g.full.Store(false)
		if g.Held() < g.Size() { // a writer has released it meanwhile, and found the disk full before that
			g.full.Store(true)
			return
		}
		g.log.Info().Msg("the disk has room again: writes are served")
	case !vfs.IsFull(err):
		g.log.Error().Err(err).Msg("cannot fill the reserve")
	}
}

// Full reports whether the disk is full.
func (g *DiskGuard) Full() bool { return g.full.Load() }

// Err returns why writes are refused, or nil.
func (g *DiskGuard) Err() error {
	if g.full.Load() {
		return errFull
	}
	return nil
}

// freeingErr returns why even writes that free space are refused, or nil.
func (g *DiskGuard) freeingErr() error {
	if g.full.Load() && g.journalBytes() > g.allowance.Load() {
		return errUsed
	}
	return nil
}

// bound bounds the size of the journal at which a checkpoint is due: while the disk has little free room, in
// bytes, the checkpoint must fit into the reserve.
func (g *DiskGuard) bound(limit, free int64) int64 {
	if size := g.Size(); size > 0 {
		return min(limit, max(size/journalShare, free/freeShare))
	}
	return limit
}

// freeShare is how much more room there is at least than the journal takes before a checkpoint, if that would
// not fit into the reserve.
const freeShare = 8

// Size returns the size in bytes of the filled reserve, 0 if there is none.
func (g *DiskGuard) Size() int64 { return g.reserve.Size() }

// Held returns the bytes that the reserve holds.
func (g *DiskGuard) Held() int64 { return g.reserve.Held() }

// Close closes the reserve. It keeps its room.
func (g *DiskGuard) Close() error { return g.reserve.Close() }
