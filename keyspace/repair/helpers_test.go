package repair

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/record"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// disk is the disk of all tests. Each has folders of its own.
var disk = vfstest.NewMemory()

var dirs atomic.Int64 // folders of newDir

// newDir makes a folder for a test.
func newDir(t testing.TB) string {
	t.Helper()
	dir := fmt.Sprint("/dir-", dirs.Add(1))
	drill.Check(t, disk.Mkdir(dir, 0o700))
	t.Cleanup(func() { disk.RemoveAll(dir) })
	return dir
}

// edit opens a file for a change.
func edit(path string, flag int, f func(f vfs.File) error) error {
	file, err := disk.OpenFile(path, os.O_RDWR|flag, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f(file), file.Close())
}

// writeFile is os.WriteFile.
func writeFile(path string, content []byte) error {
	return edit(path, os.O_CREATE|os.O_TRUNC, func(f vfs.File) error {
		_, err := f.WriteAt(content, 0)
		return err
	})
}

// truncate is os.Truncate.
func truncate(path string, size int64) error {
	return edit(path, 0, func(f vfs.File) error { return f.Truncate(size) })
}

// glob is filepath.Glob for names in one folder.
func glob(pattern string) (paths []string, err error) {
	entries, err := disk.ReadDir(filepath.Dir(pattern))
	for _, e := range entries {
		if ok, _ := filepath.Match(filepath.Base(pattern), e.Name()); ok {
			paths = append(paths, filepath.Join(filepath.Dir(pattern), e.Name()))
		}
	}
	return paths, err
}

// opened is a keyspace for one test. When the test ends it is checked and closed.
type opened struct {
	*keyspace.Keyspace
	t     *testing.T
	clock *clock.Manual
}

// place is where an item lies. An entry of a log lies in "log of <container>", an item of a group in
// "group <name> of the log of <container>".
type place struct{ container, id string }

// partition returns the number of the partition, of the given number of partitions, to which the item
// belongs.
func (p place) partition(partitions int) int {
	k := record.Key{ID: p.id, Log: strings.HasPrefix(p.container, "log of ")}
	return k.Partition(partitions)
}

// open makes a keyspace in a new folder.
func open(t *testing.T, partitions int) *opened {
	t.Helper()
	o, err := openIn(t, newDir(t), aoftest.Epoch, partitions)
	drill.Check(t, err)
	t.Cleanup(o.stop)
	return o
}

// openIn opens the keyspace in a folder at a time in ms.
func openIn(t *testing.T, dir string, now int64, partitions int) (*opened, error) {
	t.Helper()
	o := &opened{t: t, clock: clock.NewManual(now)}
	ks, err := keyspace.Open(keyspace.Options{FS: disk, Dir: dir, Clock: o.clock, NoPurge: true, Partitions: partitions})
	o.Keyspace = ks
	return o, err
}

func (o *opened) stop() {
	o.t.Helper()
	if err := o.Check(); err != nil {
		o.t.Error("before closing:", err)
	}
	drill.Report(o.t, o.Close())
}

func (o *opened) commit(tx *keyspace.Tx) {
	o.t.Helper()
	drill.Check(o.t, o.Wait(tx.Close()))
}

// dump returns all living items, and the entries of logs.
func (o *opened) dump() map[place]record.Item {
	o.t.Helper()
	all := make(map[place]record.Item)
	var tx keyspace.Tx
	o.BeginSweep(&tx)
	for _, c := range tx.Containers() {
		tx.Scan(c, 0, 1<<30, func(id string, it record.Item) { all[place{c.Name(), id}] = it })
		tx.Deaths(c).Range(streamid.ID{}, streamid.Max, false, func(e deathlog.Entry) bool {
			id := string(deathlog.AppendID(nil, e.ID, e.Item))
			all[place{"log of " + c.Name(), id}] = record.Item{Kind: record.Entry, Version: e.Etag, Body: string(e.AppendBody(nil))}
			return true
		})
	}
	o.commit(&tx)
	o.catalogueTx(func(tx *keyspace.Tx) {
		for _, c := range tx.Containers() {
			for _, name := range tx.Groups(c) {
				for item, body := range tx.Group(c, name).Items() {
					all[place{"group " + expiry.Quote(name) + " of the log of " + c.Name(), item}] = record.Item{Kind: record.Plain, Body: body}
				}
			}
		}
	})
	return all
}

// key runs a transaction on one id.
func (o *opened) key(id string, f func(tx *keyspace.Tx)) {
	o.t.Helper()
	var tx keyspace.Tx
	o.BeginKey(&tx, id)
	f(&tx)
	o.commit(&tx)
}

func (o *opened) put(container, id, body string, own int64) {
	o.t.Helper()
	o.key(id, func(tx *keyspace.Tx) { tx.Put(tx.Container(container), id, record.Document, body, own) })
}

func (o *opened) delete(container, id string) {
	o.t.Helper()
	o.key(id, func(tx *keyspace.Tx) { tx.Delete(tx.Container(container), id) })
}

// catalogueTx runs a transaction on the catalogue.
func (o *opened) catalogueTx(f func(tx *keyspace.Tx)) {
	o.t.Helper()
	var tx keyspace.Tx
	o.BeginAll(&tx)
	defer o.commit(&tx) // also when f ends the test
	f(&tx)
}

// policy sets a container's default, and creates the container if need be.
func (o *opened) policy(container string, def expiry.TTL) {
	o.t.Helper()
	o.catalogueTx(func(tx *keyspace.Tx) {
		if c := tx.Container(container); c != nil {
			tx.SetPolicy(c, def, expiry.Strict)
		} else {
			tx.CreateContainer(container, def, expiry.Strict)
		}
	})
}

// log gives a container a log of its deaths.
func (o *opened) log(container string, s keyspace.LogSettings) {
	o.t.Helper()
	o.catalogueTx(func(tx *keyspace.Tx) {
		drill.Report(o.t, tx.SetLog(tx.Container(container), s))
	})
}

// deliver delivers the entries of a log that a group has not had yet, but for the last, and acknowledges
// some.
func (o *opened) deliver(container, group string, random *rand.Rand) {
	o.t.Helper()
	o.catalogueTx(func(tx *keyspace.Tx) {
		c := tx.Container(container)
		if tx.Group(c, group) == nil {
			tx.CreateGroup(c, group, streamid.ID{}, 0)
		}
		var ids []streamid.ID
		last := tx.Group(c, group).Last()
		tx.Deaths(c).Range(last, streamid.Max, false, func(e deathlog.Entry) bool {
			if last.Less(e.ID) {
				ids = append(ids, e.ID)
			}
			return true
		})
		if len(ids) < 2 {
			return
		}
		ids = ids[:len(ids)-1]
		state, _ := tx.Deaths(c).State()
		tx.ChangeGroup(c, group, func(b *groups.Changes) {
			stream := groups.Stream{Added: state.Added, Length: state.Length, First: state.First, Last: state.Last, MaxDeleted: state.MaxDeleted}
			b.Deliver(&stream, ids, fmt.Sprint("worker-", random.IntN(3)), tx.Now(), false)
			for _, id := range ids {
				if random.IntN(2) == 0 {
					b.Ack([]streamid.ID{id})
				}
			}
		})
	})
}

// deadline makes a container with a deadline.
func (o *opened) deadline(container, member string) {
	o.t.Helper()
	o.catalogueTx(func(tx *keyspace.Tx) {
		if _, err := tx.CreateRuled(container, 0, expiry.Policy{Default: expiry.Forever, Deadline: member}); err != nil {
			o.t.Error(err)
		}
	})
}

func (o *opened) checkpoint() {
	o.t.Helper()
	drill.Check(o.t, o.Save())
}

// copied copies the folder as a crash of the process leaves it. state is its expected content.
func (o *opened) copied(state map[place]record.Item) *lived {
	o.t.Helper()
	l := &lived{dir: filepath.Join(newDir(o.t), "data"), state: state, t: o.t}
	copyFolder(o.t, o.Dir(), l.dir)
	return l
}

// copyFolder copies a folder. A checkpoint may remove a journal meanwhile: then the copy is made anew.
func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	for {
		err := disk.MkdirAll(to, 0o700)
		entries, failed := disk.ReadDir(from)
		for _, e := range entries {
			content, failed := vfs.ReadFile(disk, filepath.Join(from, e.Name()))
			err = errors.Join(err, failed, writeFile(filepath.Join(to, e.Name()), content))
		}
		if err = errors.Join(err, failed); err == nil {
			return
		}
		if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		disk.RemoveAll(to)
	}
}

// lived is a data folder with a history, as a crash has left it, and its living items. It has items of both
// kinds in several containers, overwritten, deleted and dead ones, logs of deaths, which drop old entries,
// and groups of consumers. They are in stores that were checkpointed several times, and in a journal with the
// changes since.
type lived struct {
	dir   string
	older string // a copy of an earlier moment; empty for none
	state map[place]record.Item
	t     *testing.T
}

// livedUntil is the time in ms to which state belongs.
const livedUntil = aoftest.Epoch + 29_000

func newLived(t *testing.T, seed uint64) *lived { return livedOf(open(t, 3), seed) }

// livedOf is newLived for the keyspace of a single node, or of a leader.
func livedOf(o *opened, seed uint64) *lived {
	t := o.t
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	older := ""
	o.policy("orders", 100)
	o.policy("carts", expiry.Off)
	o.policy("gone", expiry.Forever)
	o.log("orders", keyspace.LogSettings{Seconds: 3600, MaxLen: 1000, Bodies: true})
	o.log("carts", keyspace.LogSettings{Seconds: 3600, MaxLen: 1000, Bodies: true, Deletes: true})
	o.log("0", keyspace.LogSettings{Seconds: 10, MaxLen: 8})
	for round := range 4 {
		for range 60 {
			o.randomWrite(random, []string{"orders", "carts", "0", "gone"})
		}
		for n, name := range []string{"orders", "carts", "0"} {
			for i := range 4 {
				id := fmt.Sprint("brief-", round, n, i)
				o.put(name, id, strings.Repeat("x", random.IntN(100)), o.clock.Now()+1+random.Int64N(6000))
			}
		}
		o.clock.Advance(7 * time.Second)
		o.PurgeOnce()
		o.PurgeOnce() // a log may be visited before the containers
		o.deliver("orders", "mailer", random)
		o.deliver("0", "a\xff", random)
		switch round {
		case 0:
			o.policy("orders", 30)
		case 1:
			o.catalogueTx(func(tx *keyspace.Tx) { tx.Flush(tx.Container("carts")) })
			o.policy("carts", 12)
		case 2:
			o.catalogueTx(func(tx *keyspace.Tx) { tx.Drop(tx.Container("gone")) })
			o.policy("gone", 50)
			o.log("carts", keyspace.LogSettings{})
			o.log("carts", keyspace.LogSettings{Seconds: 3600, MaxLen: 1000})
		}
		if round < 3 {
			o.checkpoint()
		}
		if round == 1 {
			older = o.copied(nil).dir
		}
	}
	o.dump() // leases the clock to livedUntil
	l := o.copied(nil)
	l.older = older
	o.clock.Advance(time.Second)
	if now := o.clock.Now(); now != livedUntil {
		t.Fatalf("it is %d ms later than it should be", now-livedUntil)
	}
	l.state = o.dump()
	logged := make(map[string]int)
	for at := range l.state {
		logged[at.container]++
	}
	if logged["group mailer of the log of orders"] < 5 {
		t.Fatalf("%v", logged)
	}
	if logged["log of orders"] < 16 || logged["log of carts"] == 0 || logged["log of 0"] == 0 || logged["log of 0"] > 8 {
		t.Fatalf("%v", logged)
	}
	return l
}

// randomWrite puts or deletes a random item.
func (o *opened) randomWrite(random *rand.Rand, containers []string) {
	o.t.Helper()
	name := containers[random.IntN(len(containers))]
	id := fmt.Sprint("id-", random.IntN(40))
	if random.IntN(5) == 0 {
		o.delete(name, id)
		return
	}
	kind, body := record.Document, fmt.Sprintf(`{"n":%d,"fill":"%s"}`, random.IntN(1e6), strings.Repeat("x", random.IntN(80)))
	if random.IntN(3) == 0 {
		kind, body = record.Plain, fmt.Sprintf("bytes \xff\r\n %x", random.Uint64())
	}
	own := []int64{expiry.Inherit, expiry.Never, o.clock.Now() + random.Int64N(60_000) + 1}[random.IntN(3)]
	if random.IntN(6) == 0 {
		body = strings.Repeat("large ", 700+random.IntN(100))
	}
	touch := random.IntN(3) == 0
	o.key(id, func(tx *keyspace.Tx) {
		c := tx.Container(name)
		if it, ok := tx.Get(c, id); ok && touch {
			kind, body = it.Kind, it.Body // of a large one only the header is written
		}
		tx.Put(c, id, kind, body, own)
	})
}

// copy copies the folder with one file spoilt, or made.
func (l *lived) copy(file string, spoil func(content []byte) []byte) string {
	l.t.Helper()
	to := newDir(l.t)
	copyFolder(l.t, l.dir, to)
	path := filepath.Join(to, file)
	var content []byte
	if _, err := disk.Stat(path); err == nil {
		content = vfstest.Read(l.t, disk, path)
	}
	drill.Check(l.t, writeFile(path, spoil(content)))
	return to
}

// without copies the folder without one file.
func (l *lived) without(file string) string {
	l.t.Helper()
	dir := l.copy(file, func(b []byte) []byte { return b })
	drill.Check(l.t, disk.Remove(filepath.Join(dir, file)))
	return dir
}

// flipIn copies the folder with one bit wrong, at the last occurrence of a text in a file.
func (l *lived) flipIn(file, text string, offset int) string {
	l.t.Helper()
	return l.copy(file, func(b []byte) []byte {
		at := strings.LastIndex(string(b), text)
		if at < 0 {
			l.t.Fatalf("%q is not in %s", text, file)
		}
		b[at+offset] ^= 1
		return b
	})
}

// files are the files of the folder that are not empty and that a start reads. A crash may leave others, like
// a manifest that has not taken its name yet.
func (l *lived) files() (names []string) {
	l.t.Helper()
	entries, err := disk.ReadDir(l.dir)
	drill.Check(l.t, err)
	for _, e := range entries {
		if fi, err := e.Info(); err == nil && fi.Size() > 0 && e.Name() != "LOCK" && e.Name() != datadir.SeedName && filepath.Ext(e.Name()) != ".tmp" {
			names = append(names, e.Name())
		}
	}
	return names
}

// journals are the names of the journal's files, oldest first.
func (l *lived) journals() (names []string) {
	l.t.Helper()
	files, err := journal.Files(disk, l.dir)
	drill.Check(l.t, err)
	for _, f := range files {
		names = append(names, filepath.Base(f.Path))
	}
	return names
}

// seals are the seals of a file in their order.
func (l *lived) seals(file string) (seals []aof.Seal) {
	l.t.Helper()
	f, err := disk.Open(filepath.Join(l.dir, file))
	drill.Check(l.t, err)
	defer f.Close()
	fi, err := f.Stat()
	if err == nil {
		err = aof.EachSeal(f, 0, fi.Size(), func(s aof.Seal) bool { seals = append(seals, s); return false })
	}
	drill.Check(l.t, err)
	return seals
}

// starts returns the living items that a keyspace finds in a folder.
func starts(t *testing.T, dir string) (map[place]record.Item, error) {
	t.Helper()
	o, err := openIn(t, dir, livedUntil, 3)
	if err != nil {
		return nil, err
	}
	state := o.dump()
	o.stop()
	return state, nil
}
