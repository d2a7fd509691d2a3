package keyspace

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/storage"
	"mayfly/keyspace/store"
	"mayfly/keyspace/undo"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

// byHand makes a test drive the checkpoints.
func byHand(opt *Options) { opt.noCheckpoints = true }

// pass lets time pass, second by second, with all that the keyspace does by itself.
func (o *opened) pass(c *storage.Cadence, d time.Duration) {
	o.t.Helper()
	for ; d > 0; d -= time.Second {
		o.clock.Advance(time.Second)
		o.PurgeOnce()
		o.EndWindows()
		o.storage.Second(c)
	}
}

// eraseWithin is the least erase-within of a server.
const eraseWithin = 10 * time.Minute

var canary = regexp.MustCompile(`canary-[0-9]+-`)

// canaries returns the names of the files of a folder that hold each canary.
func canaries(t *testing.T, fsys vfs.FS, dir string) map[string][]string {
	t.Helper()
	entries, err := fsys.ReadDir(dir)
	drill.Check(t, err)
	found := make(map[string][]string)
	for _, e := range entries {
		for _, text := range canary.FindAllString(string(vfstest.Read(t, fsys, filepath.Join(dir, e.Name()))), -1) {
			if !slices.Contains(found[text], e.Name()) {
				found[text] = append(found[text], e.Name())
			}
		}
	}
	return found
}

// backUp makes a backup, and returns its folder.
func (o *opened) backUp() string {
	o.t.Helper()
	dir := filepath.Join(newDir(o.opt.FS), "backup")
	drill.Check(o.t, o.Backup(dir))
	return dir
}

// Without erase-within, dead text leaves a small folder within minutes, and a backup at once. Then an idle
// server writes nothing more.
func TestDeadTextLeavesASmallFolder(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	o := open(t, byHand, func(opt *Options) { opt.FS = disk })
	var c storage.Cadence
	for n := range 200 {
		o.put("0", fmt.Sprint("id-", n), fmt.Sprintf(`{"text":"canary-%d-"}`, n), o.clock.Now()+8000)
	}
	o.put("0", "lives", `{"text":"canary-1000-"}`, expiry.Never)
	drill.Check(t, o.Save())
	if n := len(canaries(t, o.opt.FS, o.opt.Dir)); n != 201 {
		t.Fatalf("%d texts are in the files", n)
	}
	o.clock.Advance(8 * time.Second)
	if n := len(canaries(t, o.opt.FS, o.backUp())); n != 1 {
		t.Errorf("%d texts are in a backup, one item lives", n)
	}
	o.pass(&c, 70*time.Second)
	if o.Stats().OldestWaste == 0 || o.Stats().OldestWaste > 70*time.Second {
		t.Errorf("the oldest waste is %v old", o.Stats().OldestWaste)
	}
	o.pass(&c, 2*time.Minute)
	o.reopen() // the age survives
	o.pass(&c, 3*time.Minute+30*time.Second)
	if n := len(canaries(t, o.opt.FS, o.opt.Dir)); n != 1 {
		t.Errorf("%d texts are in the files, one item lives", n)
	}
	o.pass(&c, 2*time.Minute) // the last checkpoint
	compactions, writes, syncs := o.Stats().Compactions, disk.Writes.Load(), disk.Syncs.Load()
	if compactions == 0 || o.Stats().OldestWaste != 0 {
		t.Errorf("after %d compactions waste is %v old", compactions, o.Stats().OldestWaste)
	}
	o.pass(&c, 3*time.Hour)
	if w, s := disk.Writes.Load()-writes, disk.Syncs.Load()-syncs; w > 0 || s > 0 || o.Stats().Compactions > compactions {
		t.Errorf("an idle server writes %d times, forces to disk %d times", w, s)
	}
}

// Overwritten text leaves the folder without any delete.
func TestOverwrittenTextLeavesTheFolder(t *testing.T) {
	t.Parallel()
	o := open(t, byHand)
	var c storage.Cadence
	for n := range 2 {
		o.put("0", "id", fmt.Sprintf(`{"text":"canary-%d-"}`, n), expiry.Inherit)
		o.pass(&c, 2*time.Minute)
	}
	o.pass(&c, 5*time.Minute)
	if left := canaries(t, o.opt.FS, o.opt.Dir); len(left) != 1 || left["canary-1-"] == nil {
		t.Errorf("the files hold %v", left)
	}
}

// A server that only adds items is not compacted because of age: its stores have no waste.
func TestStoresWithoutWasteAreNotCompacted(t *testing.T) {
	t.Parallel()
	o := open(t, byHand)
	var c storage.Cadence
	o.SetEraseWithin(eraseWithin)
	for n := range 40 {
		o.put("0", fmt.Sprint("id-", n), "{}", expiry.Inherit)
		o.pass(&c, time.Minute)
		if n == 20 {
			o.reopen()
			o.SetEraseWithin(eraseWithin)
		}
	}
	if n := o.Stats().Compactions; n > 0 || o.Stats().OldestWaste > 2*time.Minute {
		t.Errorf("%d compactions, the oldest waste is %v old", n, o.Stats().OldestWaste)
	}
}

// A start after a kill knows how old the changes in the journals are, also if it is the second one.
func TestWasteOfJournalsKeepsItsAge(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	o := open(t, byHand, func(opt *Options) { opt.FS, opt.Fsync = disk, Always })
	var c storage.Cadence
	o.pass(&c, time.Hour)
	o.put("0", "id", `{"text":"canary-1-"}`, expiry.Inherit)
	for range 20 {
		o.pass(&c, time.Second)
		o.put("0", "id", `{"text":"canary-2-"}`, expiry.Inherit)
	}
	for range 2 {
		after := o.opt
		disk.Look(func(d vfstest.Disk) { disk = d.Clone() })
		after.FS = disk
		o.clock.Advance(10 * time.Second)
		killed := o.Stats().OldestWaste
		ks, err := Open(after)
		drill.Check(t, err)
		if age := ks.Stats().OldestWaste; killed < 20*time.Second || age > killed+time.Second || age < killed-2*time.Second {
			t.Errorf("the oldest waste was %v old, is %v after a kill", killed, age)
		}
		disk.Look(func(d vfstest.Disk) { disk = d.Clone() })
		drill.Report(t, ks.Close())
	}
}

// eraseDrill works at random with texts that are each written once, and knows since when each is gone.
type eraseDrill struct {
	*opened
	r     *rand.Rand
	c     storage.Cadence
	texts int
	held  map[place]string // the text of each item
	names map[string]string
	since map[string]int64  // ms; when a text went, and could not be brought back any more
	stays map[string]int64  // ms; until when it stays in memory: set aside, what is dead is not removed
	of    map[string]string // the container of each text
	kill  atomic.Int64      // writes until a kill; its image is in image
	image string

	window int64  // seconds of undo-window: what is gone may stay for so long
	onHold string // the container on hold
}

func (d *eraseDrill) text() string {
	d.texts++
	return fmt.Sprintf("canary-%d-", d.texts)
}

func (d *eraseDrill) gone(at place) {
	if text, ok := d.held[at]; ok {
		d.went(text)
		delete(d.held, at)
	}
}

func (d *eraseDrill) went(text string) {
	d.since[text] = d.clock.Now() + 1000*d.window
	d.stays[text] = d.since[text]
}

// setAside notes that a container was flushed or dropped.
func (d *eraseDrill) setAside(name string) {
	const purge = 10_000 // ms; what has been dead for so long is removed
	for at := range d.held {
		if at.container == name {
			d.gone(at)
		}
	}
	now := d.clock.Now()
	for text, stays := range d.stays {
		if d.of[text] == name && stays > now-purge {
			d.stays[text] = max(stays, now+1000*d.window)
		}
	}
}

// configure sets the options after a start.
func (d *eraseDrill) configure() {
	d.SetEraseWithin(eraseWithin)
	drill.Check(d.t, d.SetUndoWindow(d.window))
}

// notice notes which items have died.
func (d *eraseDrill) notice() {
	living := d.dump()
	for at := range d.held {
		if _, ok := living[at]; !ok {
			d.gone(at)
		}
	}
}

func (d *eraseDrill) containers() []string {
	return append(slices.Sorted(maps.Keys(d.names)), "0", "1")
}

func (d *eraseDrill) step() {
	d.t.Helper()
	names := d.containers()
	name := names[d.r.IntN(len(names))]
	at := place{name, fmt.Sprint("id-", d.r.IntN(30))}
	n := d.r.IntN(100)
	if name == d.onHold { // new items only
		at.id = fmt.Sprint("id-", d.texts)
	}
	switch {
	case name == d.onHold && n >= 50 && n < 76:
	case n < 50:
		text := d.text()
		own := []int64{expiry.Inherit, expiry.Never, d.clock.Now() + d.r.Int64N(400_000) + 1, expiry.CapAt(d.clock.Now() + d.r.Int64N(400_000) + 1)}[d.r.IntN(4)]
		body := `{"text":"` + text + strings.Repeat("x", d.r.IntN(2)*5000) + `"}`
		d.put(at.container, at.id, body, own)
		d.gone(at)
		d.held[at], d.of[text] = text, name
	case n < 60:
		d.delete(at.container, at.id)
		d.gone(at)
	case n < 66: // a touch
		if it, ok := d.get(at.container, at.id); ok {
			d.put(at.container, at.id, it.Body, it.ExpireAt)
		}
	case n < 68:
		d.flush(name)
		d.setAside(name)
	case n < 71 && len(d.names) < 5:
		name, text := "", d.text()
		name = "of-" + text
		d.policy(name, []expiry.TTL{expiry.Forever, expiry.Off, 100}[d.r.IntN(3)])
		d.names[name] = text
	case n < 73 && d.names[name] != "":
		d.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container(name)) })
		d.setAside(name)
		d.went(d.names[name])
		delete(d.names, name)
	case n < 76:
		d.policy(name, []expiry.TTL{expiry.Forever, 300, 40}[d.r.IntN(3)])
	case n < 78:
		drill.Report(d.t, d.Save())
	case n < 79:
		d.reopen()
		d.configure()
	case n < 80:
		d.kill.Store(int64(d.r.IntN(20)) + 1)
	case n < 86 && d.window > 0:
		d.catalogueTx(func(tx *Tx) {
			if _, err := tx.Undo(name, ""); err != nil && !nothingToUndo(err) && !errors.Is(err, undo.ErrNotEmpty) {
				d.t.Error(err)
			}
		})
		d.adopt()
	case n < 88 && d.window > 0 && d.onHold == "":
		d.catalogueTx(func(tx *Tx) { tx.SetHold(tx.Container(name), "case 4711") })
		d.onHold = name
	case n < 89 && d.onHold != "":
		d.catalogueTx(func(tx *Tx) {
			c := tx.Container(d.onHold)
			tx.Release(c, c.Policy().Default, expiry.Strict, -1)
		})
		d.onHold = ""
	default:
		d.pass(&d.c, time.Duration(d.r.IntN(40))*time.Second)
	}
	if d.image != "" {
		d.restartFromImage()
	}
	d.notice()
}

// restartFromImage goes on in the folder that a kill has left, with an end that a power cut may have torn.
func (d *eraseDrill) restartFromImage() {
	d.t.Helper()
	o := d.opened
	drill.Check(d.t, o.Close())
	torn := d.text()
	d.went(torn)
	files, err := journal.Files(d.opt.FS, d.image)
	drill.Check(d.t, err)
	if len(files) > 0 && d.r.IntN(2) == 0 {
		last := files[len(files)-1].Path
		content := string(vfstest.Read(d.t, d.opt.FS, last)) + string(aof.AppendOps(nil, []aof.Op{aoftest.Set("0:torn", torn)}))
		drill.Check(d.t, writeFile(d.opt.FS, last, []byte(content)))
	}
	o.opt.Dir, d.image = d.image, ""
	d.start()
	d.configure()
	d.adopt() // what was under way may have happened or not
}

// adopt learns which items and containers live: the texts of others are gone.
func (d *eraseDrill) adopt() {
	living := d.dump()
	for at, text := range d.held {
		if !strings.Contains(living[at].Body, text) {
			d.gone(at)
		}
	}
	for at, it := range living {
		if text := canary.FindString(it.Body); text != "" && d.held[at] == "" {
			d.held[at] = text
			delete(d.since, text)
		}
	}
	names := make(map[string]string)
	d.onHold = ""
	d.catalogueTx(func(tx *Tx) {
		for _, c := range tx.Containers() {
			if text := canary.FindString(c.Name()); text != "" {
				names[c.Name()] = text
				delete(d.since, text)
			}
			if c.Policy().Hold != "" {
				d.onHold = c.Name()
			}
		}
	})
	for name, text := range d.names {
		if names[name] == "" {
			d.went(text)
		}
	}
	d.names = names
}

// check reports texts in the files of a folder that went at or before a time in ms.
func (d *eraseDrill) check(what, dir string, went map[string]int64, before int64) {
	d.t.Helper()
	for text, files := range canaries(d.t, d.opt.FS, dir) {
		if _, gone := d.since[text]; gone && went[text] <= before {
			d.t.Errorf("%s: %s went %d s ago, and is in %v", what, text, (d.clock.Now()-went[text])/1000, files)
		}
	}
}

// Texts that were overwritten, deleted, flushed or dropped, or have died, are in no file of the folder after
// erase-within, whatever restarts, kills, torn ends and holds come between, or that long after they cannot be
// brought back any more. A backup has none that was gone when it began.
func TestEraseWithin(t *testing.T) {
	t.Parallel()
	windows := drill.Pick([]int64{300}, []int64{0, 60}, []int64{0, 300, 0, 60, 0, 300, 60, 600})
	for round, window := range windows {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			seed := drill.Seed(t)
			d := &eraseDrill{r: rand.New(rand.NewPCG(seed, 0)), window: window,
				held: map[place]string{}, names: map[string]string{}, since: map[string]int64{}, stays: map[string]int64{}, of: map[string]string{}}
			disk := vfstest.New()
			disk.OnWrite = func(vfs.File, []byte, int64) error {
				if d.kill.Load() > 0 && d.kill.Add(-1) == 0 {
					dir := newDir(d.opt.FS)
					copyFolder(t, d.opt.FS, d.opt.Dir, dir)
					d.image = dir
				}
				return nil
			}
			d.opened = open(t, byHand, func(opt *Options) { opt.FS, opt.Partitions = disk, 3 })
			d.configure()
			kills, oldest := 0, time.Duration(0)
			for n := range 1500 {
				killed := d.image
				d.step()
				if killed != d.image || d.kill.Load() > 0 {
					kills++
				}
				oldest = max(oldest, d.Stats().OldestWaste)
				if n%20 == 0 {
					d.check("the folder", d.opt.Dir, d.stays, d.clock.Now()-eraseWithin.Milliseconds())
				}
				if n%300 == 299 {
					d.check("a backup", d.backUp(), d.since, d.clock.Now())
				}
			}
			for range 22 + window/30 {
				d.pass(&d.c, 30*time.Second)
				d.notice()
			}
			d.check("the folder at the end", d.opt.Dir, d.stays, d.clock.Now()-eraseWithin.Milliseconds())
			living := len(d.held) + len(d.names)
			if n := len(canaries(t, d.opt.FS, d.opt.Dir)); n < living || len(d.since) < 300 || kills == 0 || oldest > eraseWithin {
				t.Errorf("%d texts are in the files, %d live, %d are gone; the oldest waste was %v old", n, living, len(d.since), oldest)
			}
		})
	}
}

// Ends that a start has cut off, and the files of a repair, leave the folder too.
func TestFilesKeptAsideAreErased(t *testing.T) {
	t.Parallel()
	disk := vfstest.NewMemory()
	o := open(t, byHand, func(opt *Options) { opt.FS = disk })
	var c storage.Cadence
	torn := datadir.PartitionName(0) + aof.TornSuffix + fmt.Sprint(o.clock.Now())
	for _, name := range []string{torn, "repair-doubtful.ndjson"} {
		path := filepath.Join(o.opt.Dir, name)
		drill.Check(t, writeFile(o.opt.FS, path, []byte("canary-1-")))
		disk.SetTime(path, time.UnixMilli(o.clock.Now()))
	}
	o.pass(&c, 2*time.Hour)
	if left := canaries(t, o.opt.FS, o.opt.Dir)["canary-1-"]; len(left) != 2 {
		t.Errorf("after two hours %v are left", left)
	}
	o.SetEraseWithin(3 * time.Hour)
	o.pass(&c, time.Minute)
	if left := canaries(t, o.opt.FS, o.opt.Dir)["canary-1-"]; len(left) != 1 {
		t.Errorf("after half of erase-within %v are left", left)
	}
	o.pass(&c, time.Hour)
	if left := canaries(t, o.opt.FS, o.opt.Dir); len(left) != 0 {
		t.Errorf("after erase-within %v are left", left)
	}
}

// A compaction that fails is repeated each minute, not each second. Waste that is older than erase-within is
// told once, and once more when it is gone.
func TestLateErasureIsTold(t *testing.T) {
	t.Parallel()
	var log lockedBuffer
	o := open(t, byHand, func(opt *Options) { opt.Partitions, opt.Log = 1, zerolog.New(&log) })
	o.SetEraseWithin(eraseWithin)
	o.put("0", "id", `{"text":"canary-1-"}`, expiry.Inherit)
	drill.Check(t, o.Save())
	o.delete("0", "id")
	inTheWay := filepath.Join(o.opt.Dir, datadir.PartitionName(0)+store.TempSuffix, "folder")
	drill.Check(t, o.opt.FS.MkdirAll(inTheWay, 0o700))
	var c storage.Cadence
	o.pass(&c, 13*time.Minute)
	if s := o.Stats(); s.OldestWaste < 11*time.Minute || s.OldestWaste > 13*time.Minute || s.LastCompactErr == "" {
		t.Errorf("the oldest waste is %v old, and the last compaction %q", s.OldestWaste, s.LastCompactErr)
	}
	if n := strings.Count(log.String(), `"compaction failed"`); n < 6 || n > 8 {
		t.Errorf("%d attempts in 7 minutes", n)
	}
	const late = `"error":"the data folder holds waste of 601 seconds ago; erase-within is 600"`
	if n := strings.Count(log.String(), late); n != 1 || !strings.Contains(log.String(), `"compaction":"`) {
		t.Errorf("it is told %d times: %s", n, log.String())
	}
	drill.Check(t, o.opt.FS.RemoveAll(filepath.Dir(inTheWay)))
	o.pass(&c, time.Minute+2*time.Second)
	if left := canaries(t, o.opt.FS, o.opt.Dir); len(left) > 0 || strings.Count(log.String(), "erased in time again") != 1 {
		t.Errorf("%v is left: %s", left, log.String())
	}
}

// A store that is damaged is written anew from memory, without its waste.
func TestWasteInADamagedStore(t *testing.T) {
	t.Parallel()
	o := open(t, byHand, func(opt *Options) { opt.Partitions = 1 })
	o.put("0", "gone", `{"text":"canary-1-"}`, expiry.Inherit)
	o.put("0", "lives", `{"text":"canary-2-"}`, expiry.Inherit)
	drill.Check(t, o.Save())
	o.delete("0", "gone")
	var c storage.Cadence
	o.pass(&c, 2*time.Minute)
	o.flip(datadir.PartitionName(0), func(size int) int { return size / 2 })
	o.pass(&c, 5*time.Minute)
	if left := canaries(t, o.opt.FS, o.opt.Dir); len(left) != 1 || left["canary-2-"] == nil {
		t.Errorf("the files hold %v", left)
	}
}

// What an undo can bring back is not gone: it is in the files, and in a backup. It leaves the folder in time
// after that.
func TestErasureWaitsForWindows(t *testing.T) {
	t.Parallel()
	o := open(t, byHand)
	o.SetEraseWithin(eraseWithin)
	drill.Check(t, o.SetUndoWindow(1800))
	for n, name := range []string{"ruled", "flushed", "dropped"} {
		o.policy(name, expiry.Forever)
		o.put(name, "id", fmt.Sprintf(`{"text":"canary-%d-"}`, n), expiry.Inherit)
	}
	var c storage.Cadence
	o.pass(&c, 2*time.Minute)
	o.policy("ruled", 10)
	o.flush("flushed")
	o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("dropped")) })
	o.pass(&c, 25*time.Minute)
	if left, copied := canaries(t, o.opt.FS, o.opt.Dir), canaries(t, o.opt.FS, o.backUp()); len(left) != 3 || len(copied) != 3 {
		t.Errorf("before the windows end the files hold %v, a backup %v", left, copied)
	}
	o.pass(&c, 5*time.Minute+eraseWithin)
	if left, copied := canaries(t, o.opt.FS, o.opt.Dir), canaries(t, o.opt.FS, o.backUp()); len(left)+len(copied) != 0 {
		t.Errorf("the files hold %v, a backup %v", left, copied)
	}
}

// A backup leaves out what has died in a container that was flushed or dropped, and what a former rule keeps
// is in it.
func TestBackupOfWhatIsSetAside(t *testing.T) {
	t.Parallel()
	for _, drop := range []bool{false, true} {
		o := open(t, byHand)
		drill.Check(t, o.SetUndoWindow(3600))
		o.policy("c", expiry.Forever)
		o.put("c", "dies", `{"text":"canary-1-"}`, o.clock.Now()+300_000)
		o.put("c", "lives", `{"text":"canary-2-"}`, expiry.Never)
		o.put("c", "may live again", `{"text":"canary-3-"}`, expiry.Inherit)
		o.policy("c", 100)
		o.clock.Advance(200 * time.Second)
		if drop {
			o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("c")) })
		} else {
			o.flush("c")
		}
		if n := len(canaries(t, o.opt.FS, o.backUp())); n != 3 {
			t.Errorf("drop is %v: a backup has %d texts", drop, n)
		}
		o.clock.Advance(200 * time.Second)
		dir := o.backUp()
		if left := canaries(t, o.opt.FS, dir); len(left) != 2 || left["canary-1-"] != nil {
			t.Errorf("drop is %v: a backup has %v", drop, left)
		}
		there := open(t, func(opt *Options) { opt.FS, opt.Dir, opt.Clock = o.opt.FS, dir, o.opt.Clock })
		for range 2 {
			there.catalogueTx(func(tx *Tx) {
				if done, err := tx.Undo("c", ""); done == nil || err != nil {
					t.Errorf("Undo: %v, %v", done, err)
				}
			})
		}
		if living := there.dump(); len(living) != 2 {
			t.Errorf("drop is %v: after two undos of a backup %v live", drop, living)
		}
		o.clock.Advance(time.Hour)
		if left := canaries(t, o.opt.FS, o.backUp()); len(left) != 0 {
			t.Errorf("drop is %v: after the window a backup has %v", drop, left)
		}
	}
}
