package storage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/store"

	"github.com/rs/zerolog"
)

const (
	// defaultInterval is the time from one scrub to the next until [Scrubber.SetInterval].
	defaultInterval = 24 * time.Hour

	firstAfter = time.Hour   // the first scrub of a run comes this soon: a start has checked what was in the cache
	retryAfter = time.Minute // a failed repair is tried again
	minPace    = 4 << 20     // bytes a second
	spread     = 4           // a scheduled scrub takes this part of the interval, if the pace allows
)

// scrubbedFolder is a data folder in use. Its methods may be called by any goroutine.
type scrubbedFolder interface {
	// Files returns the paths of its files and their sizes in bytes.
	Files() (paths []string, bytes int64)
	// File opens a file as it must be now. It returns nil if it is not needed any more. With an error it
	// returns the file that could not be opened.
	File(path string) (*dataFile, error)
	// Repair writes a damaged file anew from memory, unless it has been replaced since.
	Repair(f *dataFile) error
}

// scrubOptions say what to scrub.
type scrubOptions struct {
	folder scrubbedFolder
	log    zerolog.Logger
	now    func() int64    // ms
	stop   <-chan struct{} // closing it ends Run and the rests
}

// ScrubStats are figures since the start.
type ScrubStats struct {
	Running  bool
	Last     int64 // ms; the end of the last scrub, 0 if there was none
	Scrubs   int64
	Found    int64  // damaged files
	Repaired int64  // of them
	Damaged  int    // files that could not be written anew yet
	Damage   string // of these, in words; empty if there is none
}

// Scrubber scrubs a data folder. Safe for concurrent use.
type Scrubber struct {
	opt      scrubOptions
	interval atomic.Int64 // ms; 0: never
	asked    chan struct{}
	running  atomic.Bool
	turn     chan struct{} // full during a scrub

	mu     sync.Mutex // protects what follows
	stats  ScrubStats
	broken map[string]damaged // files that could not be written anew yet, by path
}

type damaged struct {
	file   *dataFile
	reason string
}

// newScrubber returns a scrubber that does nothing before Run.
func newScrubber(opt scrubOptions) *Scrubber {
	s := &Scrubber{opt: opt, asked: make(chan struct{}, 1), turn: make(chan struct{}, 1), broken: make(map[string]damaged)}
	s.SetInterval(defaultInterval)
	return s
}

// SetInterval sets the time from the end of one scrub to the beginning of the next; 0: none but those asked
// for.
func (s *Scrubber) SetInterval(d time.Duration) { s.interval.Store(d.Milliseconds()) }

// Ask asks for a scrub now, by Run. It returns false if one is running or asked for.
func (s *Scrubber) Ask() bool {
	if !s.running.CompareAndSwap(false, true) { // it counts as running from here on
		return false
	}
	select {
	case s.asked <- struct{}{}:
	default: // asked for already
	}
	return true
}

// Stats returns the figures.
func (s *Scrubber) Stats() ScrubStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Running = s.running.Load()
	stats.Damaged = len(s.broken)
	var reasons []string
	for _, path := range slices.Sorted(maps.Keys(s.broken)) {
		reasons = append(reasons, s.broken[path].reason)
	}
	stats.Damage = strings.Join(reasons, "; ")
	return stats
}

// Run scrubs when it is time, and repeats repairs that have failed, until it is stopped. Then it tries these
// once more: after the stop the disk alone has the data.
func (s *Scrubber) Run() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	began, tried := s.opt.now(), s.opt.now()
	for {
		pace := int64(0)
		select {
		case <-s.opt.stop:
			s.retry()
			return
		case <-s.asked:
			pace = store.DefaultPace
		case <-ticker.C:
			now := s.opt.now()
			if now-tried >= retryAfter.Milliseconds() {
				tried = now
				s.retry()
			}
			pace = s.due(now, began)
		}
		if pace > 0 {
			_ = s.Scrub(context.Background(), store.NewPacer(pace, s.opt.stop, nil)) // it logs and notes the damage
		}
	}
}

// due returns the pace of the scrub that is due in bytes a second, 0 if none is. began is when the run began.
func (s *Scrubber) due(now, began int64) int64 {
	interval := s.interval.Load()
	wait, since := interval, s.Stats().Last
	if since == 0 {
		wait, since = min(interval, firstAfter.Milliseconds()), began
	}
	if interval == 0 || now-since < wait {
		return 0
	}
	_, bytes := s.opt.folder.Files()
	return min(max(bytes*spread/max(interval/1000, 1), minPace), store.DefaultPace)
}

// Scrub reads and checks all files, and has damaged ones written anew. It returns what is still damaged. A
// nil pacer means at full speed. It fails when the context ends.
func (s *Scrubber) Scrub(ctx context.Context, pacer *store.Pacer) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-s.turn }()
	s.running.Store(true)
	defer s.running.Store(false)
	paths, _ := s.opt.folder.Files()
	var errs []error
	for _, path := range paths {
		select {
		case <-s.opt.stop:
			return nil // it is not complete
		case <-ctx.Done():
			return ctx.Err()
		default:
		}
		f, err := s.opt.folder.File(path)
		if err == nil && f != nil {
			err = f.verify(ctx, pacer)
		}
		if f != nil {
			f.Close()
		}
		if ctx.Err() != nil {
			return ctx.Err() // which may be why the file was not read to its end
		}
		if err != nil {
			errs = append(errs, s.Repair(f, err))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Scrubs++
	s.stats.Last = s.opt.now()
	return errors.Join(errs...)
}

// cannotCheck reports whether an error tells of the process or its rights, not of the file.
func cannotCheck(err error) bool {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.EACCES, syscall.EPERM, syscall.ENOMEM} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// Repair has a file written anew in which reading has found damage. It returns why the file is still damaged.
// A file that could not be opened or read counts as damaged. f is nil for an error that has nothing to do
// with a file.
func (s *Scrubber) Repair(f *dataFile, reason error) error {
	if f == nil || cannotCheck(reason) {
		s.opt.log.Error().Err(reason).Msg("a file cannot be checked")
		return reason
	}
	s.mu.Lock()
	_, known := s.broken[f.Path]
	s.broken[f.Path] = damaged{f, reason.Error()}
	if !known {
		s.stats.Found++
	}
	s.mu.Unlock()
	if !known {
		s.opt.log.Error().Err(reason).Msg("a file is damaged on disk; memory has all of it: writing it anew")
	}
	if err := s.opt.folder.Repair(f); err != nil {
		s.opt.log.Error().Err(err).Str("file", f.Path).Msg("a damaged file cannot be written anew; it will be tried again")
		return fmt.Errorf("%w; writing it anew: %w", reason, err)
	}
	s.mu.Lock()
	delete(s.broken, f.Path)
	s.stats.Repaired++
	s.mu.Unlock()
	s.opt.log.Warn().Str("file", f.Path).Msg("a damaged file has been written anew from memory; nothing is lost")
	return nil
}

// retry repeats the repairs that have failed.
func (s *Scrubber) retry() {
	s.mu.Lock()
	again := slices.Collect(maps.Values(s.broken))
	s.mu.Unlock()
	for _, d := range again {
		_ = s.Repair(d.file, errors.New(d.reason)) // it logs and notes the error
	}
}

// IsDamage reports whether an error is about the content of a file.
func IsDamage(err error) bool {
	_, ok := errors.AsType[*aof.DamageError](err)
	return ok
}
