package keyspace_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/buntdbtest"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"

	"github.com/tidwall/buntdb"
)

// place is where an item lies.
type place struct{ container, id string }

// itemsIn returns the items that buntdb finds in a folder.
func itemsIn(t *testing.T, dir string) map[place]record.Item {
	t.Helper()
	db, err := buntdbtest.OpenFolder(dir)
	drill.Check(t, err)
	defer db.Close()
	names := make(map[uint32]string) // containers by number
	items := make(map[place]record.Item)
	touches := make(map[string]string)
	err = db.View(func(tx *buntdb.Tx) (err error) {
		visit := func(pattern string, f func(key, body string, it record.Item) error) {
			err = errors.Join(err, tx.AscendKeys(pattern, func(key, value string) bool {
				it, header, decoding := record.Decode(key, value)
				if decoding == nil && value[header:] != it.Body {
					decoding = errors.New("the body does not begin behind the header")
				}
				if decoding == nil {
					decoding = f(key, it.Body, it)
				}
				err = errors.Join(err, decoding)
				return decoding == nil
			}))
		}
		visit("container/*", func(key, _ string, it record.Item) error {
			c, err := record.ReadContainer(key, it)
			names[c.Number] = c.Name
			return err
		})
		visit("*", func(key, _ string, it record.Item) error {
			k, err := record.SplitKey(key)
			if _, touched := record.TouchedKey(key); touched {
				touches[key] = string(record.Append(nil, key, it))
				return nil
			}
			if err != nil {
				if record.InCatalogue(key) || key == aof.SealKey {
					err = nil
				}
				return err
			}
			if name, ok := names[k.Container]; ok { // else the container was dropped or flushed
				items[place{name, k.ID}] = it
			}
			return nil
		})
		return err
	})
	drill.Check(t, err)
	for key, rec := range touches {
		touch, base, err := record.ReadTouch(key, rec)
		drill.Check(t, err)
		itemKey, _ := record.TouchedKey(key)
		k, _ := record.SplitKey(itemKey)
		at := place{names[k.Container], k.ID}
		if it, ok := items[at]; ok && touch.Touches(base, it.Version) {
			items[at] = it.Touched(touch)
		}
	}
	return items
}

// checkSame checks that buntdb finds in a folder exactly these items.
func checkSame(t *testing.T, what, dir string, want map[place]record.Item) {
	t.Helper()
	got := itemsIn(t, dir)
	wrong := 0
	for at, it := range want {
		if other, ok := got[at]; other != it {
			if wrong++; wrong <= 5 {
				t.Errorf("%s: %v is %+v, to buntdb %+v (%v)", what, at, it, other, ok)
			}
		}
	}
	for at, it := range got {
		if _, ok := want[at]; !ok {
			if wrong++; wrong <= 5 {
				t.Errorf("%s: %v is not there, to buntdb it is %+v", what, at, it)
			}
		}
	}
	if wrong > 0 || len(want) == 0 {
		t.Errorf("%s: %d of %d items differ", what, wrong, len(want))
	}
}

// live is a keyspace under test.
type live struct {
	*keyspace.Keyspace
	t      *testing.T
	closed bool
}

func openLive(t *testing.T, policy keyspace.Fsync) *live {
	t.Helper()
	ks, err := keyspace.Open(keyspace.Options{FS: vfstest.Fast(), Dir: t.TempDir(), Partitions: 4, Fsync: policy})
	drill.Check(t, err)
	l := &live{Keyspace: ks, t: t}
	t.Cleanup(l.stop)
	return l
}

func (l *live) stop() {
	l.t.Helper()
	if l.closed {
		return
	}
	l.closed = true
	drill.Report(l.t, l.Close())
}

// commit closes a transaction and waits until it is committed.
func (l *live) commit(tx *keyspace.Tx) {
	l.t.Helper()
	drill.Report(l.t, l.Wait(tx.Close()))
}

// all runs a transaction on the catalogue.
func (l *live) all(f func(tx *keyspace.Tx)) {
	l.t.Helper()
	var tx keyspace.Tx
	l.BeginAll(&tx)
	f(&tx)
	l.commit(&tx)
}

// items returns all items by what the keyspace says itself: Scan names them, Get reads them.
func (l *live) items() map[place]record.Item {
	l.t.Helper()
	all := make(map[place]record.Item)
	var tx keyspace.Tx
	l.BeginAll(&tx)
	for _, c := range tx.Containers() {
		tx.Scan(c, 0, 1<<30, func(id string, _ record.Item) {
			it, ok := tx.Get(c, id)
			if !ok {
				l.t.Errorf("%s %q is scanned and cannot be read", c.Name(), id)
			}
			it.Body = strings.Clone(it.Body)
			all[place{c.Name(), id}] = it
		})
	}
	l.commit(&tx)
	return all
}

// write writes a random state of items: both kinds, all ends, ids and bodies of any bytes. A group of writes
// is one wait.
func (l *live) write(random *rand.Rand, containers []string, writes, ids int) {
	l.t.Helper()
	var last keyspace.LSN
	for n := range writes {
		name, id := containers[random.IntN(len(containers))], fmt.Sprint("id-", random.IntN(ids))
		if random.IntN(20) == 0 {
			id += "\r\n$3\r\ndel\x00\xff"
		}
		var tx keyspace.Tx
		l.BeginKey(&tx, id)
		c := tx.Container(name)
		own := []int64{expiry.Inherit, expiry.Never, l.Now() + 3_600_000 + random.Int64N(1e9)}[random.IntN(3)]
		switch random.IntN(6) {
		case 0:
			tx.Delete(c, id)
		case 1, 2:
			tx.Put(c, id, record.Plain, fmt.Sprintf("\x00\r\n*3\r\n$3\r\nset\r\n%x", random.Uint64()), own)
		case 3:
			it, ok := tx.Get(c, id)
			if !ok || len(it.Body) < memtable.LargeBody {
				it = record.Item{Kind: record.Plain, Body: strings.Repeat("x", memtable.LargeBody+random.IntN(100))}
			}
			tx.Put(c, id, it.Kind, it.Body, own) // of a large one only the header is written
		default:
			tx.Put(c, id, record.Document, fmt.Sprintf(`{"n":%d,"fill":"%s"}`, random.Uint64(), strings.Repeat("x", random.IntN(400))), own)
		}
		last = tx.Close()
		if n%50 == 0 || n == writes-1 {
			drill.Check(l.t, l.Wait(last))
		}
	}
}

// tryCopy copies the folder file by file. ok is false if a checkpoint ran meanwhile: such a copy is not
// valid. The shape does not show a manifest that was only written anew, but its temporary file may be gone
// before it is copied.
func (l *live) tryCopy() (to string, ok bool) {
	l.t.Helper()
	before := l.shape()
	to = l.t.TempDir()
	err := os.CopyFS(to, os.DirFS(l.Dir()))
	if l.shape() != before || errors.Is(err, os.ErrNotExist) {
		return "", false
	}
	drill.Report(l.t, err)
	return to, true
}

// copy copies the folder while no checkpoint runs.
func (l *live) copy() (to string) {
	l.t.Helper()
	for range 100 {
		if to, ok := l.tryCopy(); ok {
			return to
		}
	}
	l.t.Fatal("checkpoints run all the time")
	return ""
}

// policies are the fsync policies by name.
var policies = map[string]keyspace.Fsync{"everysec": keyspace.EverySec, "always": keyspace.Always, "no": keyspace.No}

// The data folder is buntdb files at every moment: after a kill, after checkpoints and compactions, and when
// the server has stopped.
func TestBuntdbReadsTheFolder(t *testing.T) {
	t.Parallel()
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(1, uint64(policy)))
			l := openLive(t, policy)
			l.all(func(tx *keyspace.Tx) {
				tx.CreateContainer("orders", 7200, expiry.Strict)
				tx.CreateContainer("carts", expiry.Off, expiry.Lenient)
				tx.CreateContainer("gone", expiry.Forever, expiry.Strict)
			})
			containers := []string{"orders", "carts", "0", "1", "gone"}
			thousand := drill.Pick(100, 1000, 1000)
			check := func(what string) {
				t.Helper()
				want := l.items()
				checkSame(t, what, l.copy(), want) // as kill -9 leaves it
			}
			l.write(random, containers, 10*thousand, 6*thousand)
			check("all in the journal")
			drill.Check(t, l.Save())
			check("after a checkpoint")
			l.write(random, containers, 3*thousand, 6*thousand)
			check("store and journal")
			l.all(func(tx *keyspace.Tx) { tx.Drop(tx.Container("gone")) })
			check("after a drop")
			l.all(func(tx *keyspace.Tx) { tx.Flush(tx.Container("carts")) })
			check("after a flush")
			l.all(func(tx *keyspace.Tx) { tx.Swap(tx.Container("0"), tx.Container("1")) })
			check("after a swap")
			l.all(func(tx *keyspace.Tx) { tx.CreateContainer("gone", expiry.Forever, expiry.Strict) })
			l.write(random, containers, thousand, thousand)
			check("after it was made again")
			if !l.Compact() {
				t.Fatal("Compact does nothing")
			}
			drill.Await(t, "the end of Compact", func() bool { return !l.Stats().Compacting })
			if s := l.Stats(); s.Compactions == 0 || s.LastCompactErr != "" {
				t.Fatalf("%+v", s)
			}
			check("after a compaction")
			l.write(random, containers, 1_000, 1_000)
			check("after more writes")
			want := l.items()
			l.stop()
			checkSame(t, "stopped", l.Dir(), want)
		})
	}
}

// An unfinished commit at the end of the newest journal hides nothing that was committed before it, with or
// without preallocated zeros behind it.
func TestBuntdbReadsATornJournal(t *testing.T) {
	t.Parallel()
	l := openLive(t, keyspace.Always)
	l.write(rand.New(rand.NewPCG(2, 0)), []string{"0"}, 20, 20)
	before := l.items()
	journals, err := filepath.Glob(filepath.Join(l.Dir(), "journal-*.db"))
	if err != nil || len(journals) != 1 {
		t.Fatal(journals, err)
	}
	size := l.Stats().JournalBytes
	var tx keyspace.Tx
	l.BeginKey(&tx, "last")
	tx.Put(tx.Container("0"), "last", record.Document, `{"last":true}`, expiry.Never)
	l.commit(&tx)
	after := l.items()
	dir := l.copy()
	path := filepath.Join(dir, filepath.Base(journals[0]))
	whole, err := os.ReadFile(path)
	drill.Check(t, err)
	end := l.Stats().JournalBytes
	if int64(len(whole)) <= end || size >= end {
		t.Fatalf("the journal has %d bytes, %d with preallocated zeros; it had %d", end, len(whole), size)
	}
	for at := end; at >= size; at -= drill.Pick[int64](11, 5, 1) {
		for what, content := range map[string][]byte{
			"cut":    whole[:at],
			"zeroed": append(whole[:at:at], make([]byte, int64(len(whole))-at)...),
		} {
			drill.Check(t, os.WriteFile(path, content, 0o600))
			want := before
			if _, there := itemsIn(t, dir)[place{"0", "last"}]; there {
				want = after
			}
			checkSame(t, fmt.Sprint(what, " at ", at), dir, want)
		}
	}
}

// counted is an item that one goroutine writes again and again; its body is numbered.
type counted struct {
	id          string
	sent, acked atomic.Int64
}

// deletes reports whether the write of this number is a delete.
func (*counted) deletes(n int64) bool { return n%7 == 0 }

func (c *counted) body(n int64) string {
	return fmt.Sprintf(`{"id":%q,"n":%d,"fill":"%s"}`, c.id, n, strings.Repeat("y", int(n*37%600)))
}

// check checks what buntdb has of the item in a copy that was begun after the write acked had been
// acknowledged, and done before any after sent was begun.
func (c *counted) check(it record.Item, there bool, acked, sent int64) error {
	for n := acked; n <= sent; n++ {
		deleted := n == 0 || c.deletes(n)
		if !there && deleted || there && !deleted && it.Body == c.body(n) && it.Kind == record.Document {
			return nil
		}
	}
	return fmt.Errorf("%s is %+v (%v); acknowledged before the copy was %d, sent by its end %d", c.id, it, there, acked, sent)
}

// A copy of a running folder holds every write that was acknowledged before the copy began, unless a
// checkpoint ran meanwhile.
func TestBuntdbReadsACopyOfARunningFolder(t *testing.T) {
	t.Parallel()
	for name, policy := range policies {
		t.Run(name, func(t *testing.T) {
			l := openLive(t, policy)
			stop := make(chan struct{})
			var writers sync.WaitGroup
			var items []*counted
			for w := range 8 {
				var mine []*counted
				for n := range 25 {
					mine = append(mine, &counted{id: fmt.Sprintf("writer-%d-%d", w, n)})
				}
				items = append(items, mine...)
				writers.Go(func() {
					for n := 0; !drill.Done(stop); n++ {
						l.next(mine[n%len(mine)])
					}
				})
			}
			copies, enough := 0, drill.Pick(6, 10, 20)
			for range 200 {
				acked, sent := make([]int64, len(items)), make([]int64, len(items))
				for i, c := range items {
					acked[i] = c.acked.Load()
				}
				dir, ok := l.tryCopy()
				for i, c := range items {
					sent[i] = c.sent.Load()
				}
				if !ok {
					continue
				}
				copies++
				found := itemsIn(t, dir)
				for i, c := range items {
					at := place{"0", c.id}
					it, there := found[at]
					drill.Report(t, c.check(it, there, acked[i], sent[i]))
					delete(found, at)
				}
				for at, it := range found {
					t.Errorf("%v was never sent: %+v", at, it)
				}
				if copies%4 == 0 {
					if err := l.Save(); err != nil { // the next copies have something in the stores
						t.Error(err)
					}
				}
				if copies == enough || t.Failed() {
					break
				}
			}
			close(stop)
			writers.Wait()
			if copies < enough && !t.Failed() {
				t.Errorf("only %d copies were valid", copies)
			}
		})
	}
}

// next writes an item once more.
func (l *live) next(c *counted) {
	n := c.sent.Add(1)
	var tx keyspace.Tx
	l.BeginKey(&tx, c.id)
	if c.deletes(n) {
		tx.Delete(tx.Container("0"), c.id)
	} else {
		tx.Put(tx.Container("0"), c.id, record.Document, c.body(n), expiry.Inherit)
	}
	l.commit(&tx)
	c.acked.Store(n)
}

// shape describes what a checkpoint changes in the folder: the journals' names and the stores' sizes.
func (l *live) shape() (s string) {
	l.t.Helper()
	for _, pattern := range []string{"*.db", "*.tmp"} {
		names, err := filepath.Glob(filepath.Join(l.Dir(), pattern))
		drill.Check(l.t, err)
		for _, name := range names {
			s += name
			if fi, err := os.Stat(name); err == nil && !strings.HasPrefix(filepath.Base(name), "journal-") {
				s += fmt.Sprint(" ", fi.Size())
			}
			s += "\n"
		}
	}
	return s
}

// A data folder can be read without mayfly: a record is a header of six fields, and the body as it was
// written.
func Example_buntdb() {
	dir, err := os.MkdirTemp("", "mayfly")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ks, err := keyspace.Open(keyspace.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	var tx keyspace.Tx
	ks.BeginKey(&tx, "order-1")
	tx.Put(tx.Container("0"), "order-1", keyspace.Document, `{"sku": "A-1"}`, expiry.Never)
	if err := ks.Wait(tx.Close()); err != nil {
		panic(err)
	}

	db, err := buntdbtest.OpenFolder(dir) // although it is in use
	if err != nil {
		panic(err)
	}
	db.View(func(tx *buntdb.Tx) error {
		return tx.AscendKeys("*:order-1", func(key, value string) bool {
			fields := strings.SplitN(value, " ", 7) // format, checksum, kind, time, expiry, version, body
			fmt.Println(fields[2], fields[4], fields[6])
			return true
		})
	})
	if err := ks.Close(); err != nil {
		panic(err)
	}
	// Output: d -1 {"sku": "A-1"}
}
