package storage

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/store"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

// texts is a folder of text files. Repair writes them unless it has to fail.
type texts struct {
	t      *testing.T
	disk   *vfstest.Faulty
	mu     sync.Mutex // protects what follows
	files  []*dataFile
	fail   error
	opened int
	bytes  int64
}

func (x *texts) Files() (paths []string, bytes int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.files {
		paths = append(paths, f.Path)
	}
	return append(paths, "not needed any more"), x.bytes
}

func (x *texts) File(path string) (*dataFile, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.files {
		if f.Path == path {
			x.opened++
			f := *f
			return &f, f.Open()
		}
	}
	return nil, nil
}

func (x *texts) Repair(f *dataFile) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fail != nil {
		return x.fail
	}
	vfstest.Write(x.t, x.disk, f.Path, []byte(f.Text))
	return nil
}

func (x *texts) set(change func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	change()
}

// scrubbed makes a scrubber of two files.
func scrubbed(t *testing.T) (s *Scrubber, x *texts, now *int64, log *bytes.Buffer, stop chan struct{}) {
	t.Helper()
	x, now, log, stop = &texts{t: t, disk: vfstest.New()}, new(int64), new(bytes.Buffer), make(chan struct{})
	for _, name := range []string{"format", "manifest"} {
		f := &dataFile{FS: x.disk, Path: filepath.Join(vfstest.Dir, name), Text: name + " text"}
		vfstest.Write(t, x.disk, f.Path, []byte(f.Text))
		x.files = append(x.files, f)
	}
	s = newScrubber(scrubOptions{folder: x, log: zerolog.New(log), now: func() int64 { return *now }, stop: stop})
	return s, x, now, log, stop
}

func TestScrub(t *testing.T) {
	t.Parallel()
	s, x, now, log, _ := scrubbed(t)
	*now = 77
	if err := s.Scrub(t.Context(), nil); err != nil || log.Len() > 0 {
		t.Errorf("sound files: %v; %s", err, log)
	}
	if got, want := s.Stats(), (ScrubStats{Last: 77, Scrubs: 1}); got != want {
		t.Errorf("%+v, not %+v", got, want)
	}
	path := x.files[1].Path
	vfstest.Write(t, x.disk, path, []byte("something else"))
	x.fail = errors.New("the disk is full")
	for range 2 { // it is found once
		if err := s.Scrub(t.Context(), nil); !IsDamage(err) || !errors.Is(err, x.fail) {
			t.Errorf("a damaged file: %v", err)
		}
		got := s.Stats()
		if got.Found != 1 || got.Repaired != 0 || got.Damaged != 1 || !strings.HasPrefix(got.Damage, path+" is damaged") {
			t.Errorf("%+v", got)
		}
	}
	if text := log.String(); strings.Count(text, "is damaged on disk") != 1 || !strings.Contains(text, "the disk is full") {
		t.Errorf("the log says %s", text)
	}
	x.fail = nil
	s.retry()
	if got := s.Stats(); got.Found != 1 || got.Repaired != 1 || got.Damaged != 0 || got.Damage != "" || s.Scrub(t.Context(), nil) != nil {
		t.Errorf("%+v", got)
	}
}

// openHook is a file system that calls onOpen before it opens a file to read it.
type openHook struct {
	vfs.FS
	onOpen func(path string)
}

func (h *openHook) Open(path string) (vfs.File, error) {
	if h.onOpen != nil {
		h.onOpen(path)
	}
	return h.FS.Open(path)
}

// A file "format" that is raised while a scrub or a backup opens it is not damaged.
func TestFormatThatIsRaisedIsNotDamaged(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(e *Engine) error{
		"scrub":  func(e *Engine) error { return e.Scrub.Scrub(t.Context(), nil) },
		"backup": func(e *Engine) error { return e.backup(t.Context(), vfstest.Dir+"-backup") },
	} {
		disk := &openHook{FS: vfstest.New()}
		e := openOn(t, disk, vfstest.Dir)
		raised := make(chan error, 1)
		disk.onOpen = func(path string) {
			if filepath.Base(path) == datadir.FormatName {
				disk.onOpen = nil
				go func() { raised <- e.AllowCollections() }()
				for i := 0; i < 100_000 && !e.CollectionsAllowed(); i++ { // it has the time to get between
					runtime.Gosched()
				}
			}
		}
		if err := use(e); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		drill.Check(t, <-raised)
		if s := e.Scrub.Stats(); s.Found != 0 {
			t.Errorf("%s: %+v", name, s)
		}
		if err := e.Scrub.Scrub(t.Context(), nil); err != nil || !e.CollectionsAllowed() || e.Scrub.Stats().Found != 0 {
			t.Errorf("%s: the raised file: %v, %+v", name, err, e.Scrub.Stats())
		}
	}
}

// A scrub is due an hour after the start, and then one interval after the last.
func TestScrubsAreDue(t *testing.T) {
	t.Parallel()
	s, x, now, _, _ := scrubbed(t)
	hour := time.Hour.Milliseconds()
	due := func(want int64) {
		t.Helper()
		if pace := s.due(*now, 0); pace != want {
			t.Errorf("at %d ms the pace is %d, not %d", *now, pace, want)
		}
	}
	due(0)
	*now = hour - 1
	due(0)
	*now = hour
	due(minPace)
	x.bytes = 200 << 30
	due(200 << 30 * spread / (24 * 3600))
	x.bytes = 1 << 50
	due(store.DefaultPace)
	drill.Check(t, s.Scrub(t.Context(), nil))
	due(0)
	*now += 24*hour - 1
	due(0)
	*now++
	due(store.DefaultPace)
	s.SetInterval(0)
	due(0)
	s.SetInterval(time.Second)
	due(store.DefaultPace)
}

// Run scrubs when asked, and repeats a failed repair when it stops.
func TestRun(t *testing.T) {
	t.Parallel()
	s, x, _, _, stop := scrubbed(t)
	vfstest.Write(t, x.disk, x.files[0].Path, nil)
	x.fail = errors.New("not now")
	if !s.Ask() || s.Ask() || !s.Stats().Running {
		t.Error("asked twice")
	}
	done := make(chan struct{})
	go func() { s.Run(); close(done) }()
	for s.Stats().Scrubs == 0 {
		runtime.Gosched()
	}
	if got := s.Stats(); got.Damaged != 1 {
		t.Errorf("%+v", got)
	}
	x.set(func() { x.fail = nil })
	close(stop)
	<-done
	if got := s.Stats(); got.Damaged != 0 || got.Repaired != 1 || got.Running {
		t.Errorf("after the stop: %+v", got)
	}
}

// A stop ends a scrub between two files; that does not count as one.
func TestStopEndsAScrub(t *testing.T) {
	t.Parallel()
	s, x, _, _, stop := scrubbed(t)
	close(stop)
	if err := s.Scrub(t.Context(), nil); err != nil || s.Stats().Scrubs != 0 || x.opened > 0 {
		t.Errorf("%v, %+v, %d files", err, s.Stats(), x.opened)
	}
}

// A context that ends, ends a scrub. What was not read is not damaged.
func TestContextEndsAScrub(t *testing.T) {
	t.Parallel()
	s, x, _, log, _ := scrubbed(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.turn <- struct{}{} // another scrub
	if err := s.Scrub(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("it waits for its turn: %v", err)
	}
	<-s.turn
	if err := s.Scrub(ctx, nil); !errors.Is(err, context.Canceled) || s.Stats() != (ScrubStats{}) || x.opened > 0 || log.Len() > 0 {
		t.Errorf("%v, %+v, %d files; %s", err, s.Stats(), x.opened, log)
	}
}

// An error that is of no file is reported, and no repair is tried.
func TestErrorOfNoFile(t *testing.T) {
	t.Parallel()
	s, _, _, log, _ := scrubbed(t)
	failure := errors.New("it is closed")
	if err := s.Repair(nil, failure); err != failure || s.Stats().Found != 0 || !strings.Contains(log.String(), "it is closed") {
		t.Errorf("%v, %+v, %s", err, s.Stats(), log)
	}
	if IsDamage(failure) || !IsDamage(errors.Join(failure, &aof.DamageError{})) {
		t.Error("damage is not told from other errors")
	}
}
