package repair

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// Numbers of the containers in a folder with logs.
const (
	ordersNumber = 20 + iota
	cartsNumber
	ordersLog
	cartsLog
	mailerGroup
)

// logged is the content of a folder with logs: containers orders and carts, with a log each, and a group of
// the former.
type logged struct {
	t          *testing.T
	containers map[uint32]record.Container
	items      map[string]record.Item // by key
}

func newLogged(t *testing.T) *logged {
	l := &logged{t, make(map[uint32]record.Container), make(map[string]record.Item)}
	for number := range uint32(16) {
		l.add(record.Container{Number: number, Name: fmt.Sprint(number), DB: number, LastDB: 17 * (1 - min(number, 1)), Policy: expiry.Policy{Default: expiry.Forever}})
	}
	l.add(record.Container{Number: ordersNumber, Name: "orders", DB: 16, Policy: expiry.Policy{Default: 10}, Log: &record.Log{Number: ordersLog, MaxLen: 500, Bodies: true}})
	l.add(record.Container{Number: cartsNumber, Name: "carts", DB: 17, Policy: expiry.Policy{Default: 10}, Log: &record.Log{Number: cartsLog, MaxLen: 600}})
	l.add(record.Container{Number: ordersLog, Policy: expiry.Policy{Default: 3600}, Hidden: &record.Hidden{LogOf: ordersNumber}})
	l.add(record.Container{Number: cartsLog, Policy: expiry.Policy{Default: 7200}, Hidden: &record.Hidden{LogOf: cartsNumber}})
	l.add(record.Container{Number: mailerGroup, Policy: expiry.Policy{Default: expiry.Forever}, Hidden: &record.Hidden{GroupOf: ordersLog, Group: "mailer"}})
	for i := range 20 {
		it := record.Item{Kind: record.Document, Body: fmt.Sprintf(`{"n":%d}`, i), TS: aoftest.Epoch + 20_000, Version: uint64(1000 + i)}
		l.items[string(record.AppendKey(nil, ordersNumber, fmt.Sprint("order-", i)))] = it
		l.items[string(record.AppendKey(nil, cartsNumber, fmt.Sprint("cart-", i)))] = it
		l.entry(ordersLog, fmt.Sprint("dead-", i), i, uint64(100+i))
		l.entry(cartsLog, fmt.Sprint("dead-", i), i, uint64(200+i))
	}
	for n := range 3 {
		state := deathlog.State{Added: 5, Last: streamid.ID{Ms: 5}}
		for _, log := range []uint32{ordersLog, cartsLog} {
			l.items[string(record.AppendLogKey(nil, log, deathlog.StateID(n, 3)))] = state.Item(aoftest.Epoch, uint64(500+n))
		}
	}
	l.items[string(record.AppendKey(nil, mailerGroup, "{g}last"))] = record.Item{Kind: record.Plain, Body: "0-0 0", TS: aoftest.Epoch, ExpireAt: expiry.Never, Version: 900}
	return l
}

func (l *logged) add(c record.Container) { l.containers[c.Number] = c }

// entry adds an entry to a log.
func (l *logged) entry(log uint32, item string, n int, etag uint64) {
	at := int64(aoftest.Epoch + 10_000 + n)
	e := deathlog.Entry{ID: streamid.ID{Ms: uint64(at), Seq: 1}, Item: item, Cause: expiry.ByContainer, At: at, TS: at - 10_000, Etag: etag, Kind: record.Document, Body: "{}", HasBody: true}
	key := record.AppendLogKey(nil, log, string(deathlog.AppendID(nil, e.ID, item)))
	l.items[string(key)] = record.Item{Kind: record.Entry, Body: string(e.AppendBody(nil)), TS: at, Version: etag}
}

// write writes the folder, of three partitions, as a clean stop leaves it.
func (l *logged) write() (dir string) {
	l.t.Helper()
	dir = filepath.Join(newDir(l.t), "logged")
	staging, err := datadir.NewStaging(disk, dir)
	drill.Check(l.t, err)
	target, err := staging.CreateDir(3)
	drill.Check(l.t, err)
	files := map[string][]aof.Op{datadir.CatalogueName: nil}
	for n := range 3 {
		files[datadir.PartitionName(n)] = nil
	}
	for _, number := range slices.Sorted(maps.Keys(l.containers)) {
		files[datadir.CatalogueName] = append(files[datadir.CatalogueName], aof.Op{Key: record.ContainerKey(number), Rec: string(l.containers[number].Append(nil))})
	}
	for _, key := range sortedKeys(l.items) {
		k, err := record.SplitKey(key)
		drill.Check(l.t, err)
		name := datadir.PartitionName(k.Partition(3))
		files[name] = append(files[name], aof.Op{Key: key, Rec: string(record.Append(nil, key, l.items[key]))})
	}
	m := datadir.NewManifest()
	m.Clean = true
	for name, ops := range files {
		mark, end, err := store.Fill(disk, filepath.Join(staging.Dir(), name), ops)
		drill.Check(l.t, err)
		m.Stores[name] = []datadir.FileState{{Mark: mark, End: end}}
	}
	err = errors.Join(target.AllowLogs(false), m.Write(disk, staging.Dir()), target.Close(), staging.Finish())
	drill.Check(l.t, staging.Close(err))
	return dir
}

// contentOf returns the containers and the items that a sound folder has in its files.
func contentOf(t *testing.T, dir string) (containers map[uint32]record.Container, items map[string]record.Item) {
	t.Helper()
	s, err := openFolder(disk, dir)
	drill.Check(t, err)
	defer s.close()
	m := &merger{folderReader: s}
	if _, err := m.readJournals(); err != nil {
		t.Fatal(err)
	}
	containers, items = make(map[uint32]record.Container), make(map[string]record.Item)
	for n := -1; n < s.partitions; n++ {
		g, report, err := m.merge(n)
		if err != nil || report.State == Damaged {
			t.Fatal(report, err)
		}
		for key, v := range g.items {
			if v.del {
				continue
			}
			it, _, err := record.Decode(key, v.rec)
			if err != nil {
				t.Fatal(key, err)
			}
			if n >= 0 {
				items[key] = it
			} else if record.ContainsText(key) {
				c, err := record.ReadContainer(key, it)
				drill.Check(t, err)
				containers[c.Number] = c
			}
		}
	}
	return containers, items
}

// spoil flips a bit of a file behind a text.
func spoil(t *testing.T, path, text string) {
	t.Helper()
	b := vfstest.Read(t, disk, path)
	at := bytes.Index(b, []byte(text))
	if at < 0 {
		t.Fatalf("%s lacks %q", path, text)
	}
	b[at+len(text)-1] ^= 1
	drill.Check(t, writeFile(path, b))
}

// erase overwrites the set of a key in a file, so that nothing tells of it.
func erase(t *testing.T, path, key string) {
	t.Helper()
	b := vfstest.Read(t, disk, path)
	at := bytes.Index(b, []byte("\r\n"+key+"\r\n"))
	from := bytes.LastIndex(b[:at], []byte("*3\r\n"))
	to := at + 1 + bytes.Index(b[at+1:], []byte("*3\r\n"))
	if at < 0 || from < 0 || to <= at {
		t.Fatal(path, key, from, at, to)
	}
	clear(b[from:to])
	drill.Check(t, writeFile(path, b))
}

// TestRepairOfLogs: what damage has left of logs and groups is copied, and the new folder starts with it.
func TestRepairOfLogs(t *testing.T) {
	t.Parallel()
	catalogue := func(numbers ...uint32) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			for _, number := range numbers {
				erase(t, filepath.Join(dir, datadir.CatalogueName), record.ContainerKey(number))
			}
		}
	}
	flipped := func(text string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { spoil(t, filepath.Join(dir, datadir.CatalogueName), text) }
	}
	for _, tt := range []struct {
		what   string
		change func(l *logged)
		spoil  func(t *testing.T, dir string)
		want   func(l *logged)
		words  []string // in what the report says of policies
		lost   string   // the container of the only item that is lost
	}{
		{what: "a sound folder"},
		{what: "an unclaimed log in a sound folder", change: func(l *logged) {
			c := l.containers[ordersNumber]
			c.Log = nil
			l.add(c)
		}, want: func(l *logged) { l.drop(ordersLog); l.drop(mailerGroup) }},
		{what: "the record of a log is damaged", spoil: flipped(`"log_of":20`), want: func(l *logged) {
			l.setDefault(ordersLog, expiry.Forever)
		}, words: []string{`log of container "orders"`, "kept until LOG sets a time"}},
		{what: "the record of a log is gone", spoil: catalogue(ordersLog), want: func(l *logged) {
			l.setDefault(ordersLog, expiry.Forever)
		}, words: []string{`log of container "orders"`}},
		{what: "the record of the container is damaged", spoil: flipped(`"name":"orders"`), want: func(l *logged) {
			l.add(record.Container{Number: ordersNumber, Name: "recovered-20", Policy: expiry.Policy{Default: expiry.Forever}, Log: &record.Log{Number: ordersLog, MaxLen: defaultMaxLen, Bodies: true}})
		}, words: []string{`"recovered-20"`}},
		{what: "the record of the container is gone", spoil: catalogue(ordersNumber), want: func(l *logged) {
			l.add(record.Container{Number: ordersNumber, Name: "recovered-20", Policy: expiry.Policy{Default: expiry.Forever}, Log: &record.Log{Number: ordersLog, MaxLen: defaultMaxLen, Bodies: true}})
		}, words: []string{`"recovered-20"`}},
		{what: "the records of a container without items and of its log are gone", change: func(l *logged) {
			maps.DeleteFunc(l.items, func(key string, _ record.Item) bool { return strings.HasPrefix(key, "21:") })
		}, spoil: catalogue(cartsNumber, cartsLog), want: func(l *logged) {
			delete(l.containers, cartsNumber)
			l.add(record.Container{Number: mailerGroup + 1, Name: "recovered-23", Policy: expiry.Policy{Default: expiry.Forever}, Log: &record.Log{Number: cartsLog, MaxLen: defaultMaxLen, Bodies: true}})
			l.add(record.Container{Number: cartsLog, Policy: expiry.Policy{Default: expiry.Forever}, Hidden: &record.Hidden{LogOf: mailerGroup + 1}})
		}, words: []string{"record of log 23 is lost", `"recovered-23"`}},
		{what: "the record of the container lacks the log", change: func(l *logged) {
			c := l.containers[ordersNumber]
			c.Log = nil
			l.add(c)
		}, spoil: catalogue(3), want: func(l *logged) {
			delete(l.containers, 3)
			c := l.containers[ordersNumber]
			c.Log = &record.Log{Number: ordersLog, MaxLen: defaultMaxLen, Bodies: true}
			l.add(c)
		}, words: []string{`"orders" lacks its log`}},
		{what: "the container has another log", change: func(l *logged) {
			c := l.containers[ordersNumber]
			c.Log = &record.Log{Number: 99, MaxLen: 1}
			l.add(c)
			l.add(record.Container{Number: 99, Policy: expiry.Policy{Default: 1}, Hidden: &record.Hidden{LogOf: ordersNumber}})
		}, spoil: catalogue(3), want: func(l *logged) {
			delete(l.containers, 3)
			l.drop(ordersLog)
			l.drop(mailerGroup)
		}, words: []string{`"orders" has another log than 22`}},
		{what: "two containers have one log", change: func(l *logged) {
			c := l.containers[cartsNumber]
			c.Log = &record.Log{Number: ordersLog, MaxLen: 7}
			l.add(c)
			l.drop(cartsLog)
		}, spoil: catalogue(3), want: func(l *logged) {
			delete(l.containers, 3)
			c := l.containers[ordersNumber]
			c.Log = nil
			l.add(c)
			c = l.containers[ordersLog]
			c.Hidden = &record.Hidden{LogOf: cartsNumber}
			l.add(c)
		}, words: []string{`"orders" and "carts" have the same log`}},
		{what: "the container names a log that is none", change: func(l *logged) {
			c := l.containers[ordersNumber]
			c.Log = &record.Log{Number: cartsNumber, MaxLen: 7}
			l.add(c)
		}, want: func(l *logged) {
			c := l.containers[ordersNumber]
			c.Log = nil
			l.add(c)
			l.drop(ordersLog)
			l.drop(mailerGroup)
		}, words: []string{`the log of container "orders" is gone`}},
		{what: "the record of a group is gone", spoil: catalogue(mailerGroup), want: func(l *logged) {
			l.add(record.Container{Number: mailerGroup, Name: "recovered-24", Policy: expiry.Policy{Default: expiry.Forever}})
		}, words: []string{`"recovered-24"`}},
		{what: "a group twice", change: func(l *logged) {
			c := l.containers[mailerGroup]
			c.Number = mailerGroup + 1
			l.add(c)
		}, spoil: catalogue(3), want: func(l *logged) {
			delete(l.containers, 3)
			l.drop(mailerGroup)
		}, words: []string{`both hold the group mailer of the log of orders`}},
		{what: "an entry in a container, and an item in a log", change: func(l *logged) {
			l.entry(ordersNumber, "stray", 1, 1)
			l.items[string(record.AppendKey(nil, cartsLog, "stray"))] = record.Item{Kind: record.Plain, Version: 2}
		}, want: func(l *logged) {
			maps.DeleteFunc(l.items, func(key string, _ record.Item) bool { return strings.HasSuffix(key, "stray") })
		}, words: []string{"the number 20", "the number 23"}},
		{what: "an item in a group that is not of one", change: func(l *logged) {
			l.items[string(record.AppendKey(nil, mailerGroup, "{g}stray"))] = record.Item{Kind: record.Plain, Body: "x", Version: 2}
			l.items[string(record.AppendKey(nil, mailerGroup, "stray"))] = record.Item{Kind: record.Document, Body: "{}", Version: 3}
		}, want: func(l *logged) {
			maps.DeleteFunc(l.items, func(key string, _ record.Item) bool { return strings.HasSuffix(key, "stray") })
		}, words: []string{"group mailer of the log of orders has items"}},
		{what: "an entry is damaged", spoil: func(t *testing.T, dir string) {
			key := "22~" + deathOf("dead-3", 3)
			rec := record.Append(nil, key, newLogged(t).items[key])
			spoil(t, filepath.Join(dir, datadir.PartitionName(record.Partition("dead-3", 3))), key+fmt.Sprintf("\r\n$%d\r\n", len(rec))+string(rec))
		}, want: func(l *logged) { delete(l.items, "22~"+deathOf("dead-3", 3)) }, lost: "log of orders"},
		{what: "an item that has died, in a damaged file", change: func(l *logged) {
			l.items["20:dead-3"] = record.Item{Kind: record.Document, Body: "{}", TS: aoftest.Epoch + 20_000, Version: 103}
			l.items["21:dead-3"] = record.Item{Kind: record.Document, Body: "{}", TS: aoftest.Epoch + 20_000, Version: 104} // of another version
		}, spoil: func(t *testing.T, dir string) {
			spoil(t, filepath.Join(dir, datadir.PartitionName(record.Partition("dead-3", 3))), "seal\r\n$104\r\n1")
		}, want: func(l *logged) { delete(l.items, "20:dead-3") }},
	} {
		t.Run(tt.what, func(t *testing.T) {
			l := newLogged(t)
			if tt.change != nil {
				tt.change(l)
			}
			dir := l.write()
			if tt.spoil != nil {
				tt.spoil(t, dir)
			}
			to := filepath.Join(newDir(t), "new")
			report, err := Run(disk, dir, to, 0, func(string, *Report) error { return nil })
			drill.Check(t, err)
			if tt.want != nil {
				tt.want(l)
			}
			l.check(to)
			users := 0
			for key := range l.items {
				k, _ := record.SplitKey(key)
				if c := l.containers[k.Container]; c.Hidden == nil {
					users++
				}
			}
			if report.Items != users || report.Logged != len(l.items)-users {
				t.Errorf("%d items and %d of logs are copied, want %d and %d", report.Items, report.Logged, users, len(l.items)-users)
			}
			said := strings.Join(report.Policies, "\n")
			for _, word := range tt.words {
				if !strings.Contains(said, word) {
					t.Errorf("the report lacks %q:\n%s", word, said)
				}
			}
			if tt.words == nil && said != "" {
				t.Errorf("the report says %s", said)
			}
			if lost := len(report.Lost); tt.lost == "" && lost > 0 || tt.lost != "" && (lost != 1 || report.Lost[0].Container != tt.lost) {
				t.Errorf("lost: %+v", report.Lost)
			}
			if (tt.spoil == nil && tt.words == nil) != report.Clean() {
				t.Errorf("%+v", report)
			}
			if version := readVersion(t, to); version != readVersion(t, newLogged(t).write()) {
				t.Errorf("the new folder has format %d", version)
			}
			o, err := openIn(t, to, aoftest.Epoch+21_000, 3)
			drill.Check(t, err)
			o.stop()
			l.checkContainers(to) // a start has dropped nothing
		})
	}
}

// deathOf returns the id of the entry that the method entry has added.
func deathOf(item string, n int) string {
	return string(deathlog.AppendID(nil, streamid.ID{Ms: uint64(aoftest.Epoch + 10_000 + n), Seq: 1}, item))
}

func readVersion(t *testing.T, dir string) int {
	t.Helper()
	_, version, err := datadir.ReadFormat(string(vfstest.Read(t, disk, filepath.Join(dir, datadir.FormatName))))
	drill.Check(t, err)
	return version
}

// drop removes a container with its items.
func (l *logged) drop(number uint32) {
	delete(l.containers, number)
	maps.DeleteFunc(l.items, func(key string, _ record.Item) bool {
		k, err := record.SplitKey(key)
		return err == nil && k.Container == number
	})
}

func (l *logged) setDefault(number uint32, ttl expiry.TTL) {
	c := l.containers[number]
	c.Policy.Default = ttl
	l.add(c)
}

// check compares a folder.
func (l *logged) check(dir string) {
	l.t.Helper()
	l.checkContainers(dir)
	_, items := contentOf(l.t, dir)
	for key := range l.items {
		if _, ok := items[key]; !ok {
			l.t.Errorf("%q is missing", key)
		}
	}
	for key, it := range items {
		if want, ok := l.items[key]; !ok || it != want {
			l.t.Errorf("%q is %+v, want %+v (%t)", key, it, want, ok)
		}
	}
}

// checkContainers compares the containers of a folder.
func (l *logged) checkContainers(dir string) {
	l.t.Helper()
	containers, _ := contentOf(l.t, dir)
	text := func(c record.Container) string {
		if c.Hidden != nil {
			return fmt.Sprintf("%q %v %v %+v", c.Name, c.Policy.Default, c.Log, *c.Hidden)
		}
		return fmt.Sprintf("%q %v %v", c.Name, c.Policy.Default, c.Log)
	}
	for number, want := range l.containers {
		if got, ok := containers[number]; !ok || text(got) != text(want) {
			l.t.Errorf("container %d is %s, want %s (%t)", number, text(got), text(want), ok)
		}
	}
	for number, c := range containers {
		if _, ok := l.containers[number]; !ok && c.DB >= 16 {
			l.t.Errorf("container %d is %s", number, text(c))
		}
	}
}

// TestRepairOfDeletes: the copy has the version of folders with what clients deleted if a log goes on with
// that, or has an entry of it.
func TestRepairOfDeletes(t *testing.T) {
	t.Parallel()
	for what, tt := range map[string]struct {
		change func(l *logged)
		want   int
	}{
		"none": {func(*logged) {}, 4},
		"a log that goes on": {func(l *logged) {
			c := l.containers[ordersNumber]
			c.Log = &record.Log{Number: ordersLog, MaxLen: 500, Deletes: true}
			l.add(c)
		}, 6},
		"an entry": {func(l *logged) {
			id := streamid.ID{Ms: aoftest.Epoch}
			e := deathlog.Entry{ID: id, Item: "x", Cause: deathlog.Deleted, At: aoftest.Epoch, TS: aoftest.Epoch, Kind: record.Document}
			key := string(record.AppendLogKey(nil, ordersLog, string(deathlog.AppendID(nil, id, "x"))))
			l.items[key] = record.Item{Kind: record.Entry, Body: string(e.AppendBody(nil)), TS: aoftest.Epoch, Version: 7}
		}, 6},
	} {
		l := newLogged(t)
		tt.change(l)
		dir := filepath.Join(newDir(t), "repaired")
		if _, err := Run(disk, l.write(), dir, 0, func(string, *Report) error { return nil }); err != nil {
			t.Fatal(err)
		}
		l.check(dir)
		text, err := vfs.ReadFile(disk, filepath.Join(dir, datadir.FormatName))
		if _, version, bad := datadir.ReadFormat(string(text)); err != nil || bad != nil || version != tt.want {
			t.Errorf("%s: version %d, want %d; %v, %v", what, version, tt.want, err, bad)
		}
	}
}

// TestInspectOfLogs: logs and groups are sound; what belongs to no container is noted.
func TestInspectOfLogs(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	if in := mustInspect(t, l.write()); in.State != Sound || len(in.Notes) != 1 {
		t.Errorf("%+v", in)
	}
	c := l.containers[cartsNumber]
	c.Log = nil
	l.add(c)
	if in := mustInspect(t, l.write()); in.State != Sound || len(in.Notes) != 2 || !strings.HasPrefix(in.Notes[1], "23 records are of containers that have been dropped") {
		t.Errorf("%+v", in)
	}
	l.items["22~"+deathOf("bad", 1)] = record.Item{Kind: record.Entry, Body: "no entry"}
	in := mustInspect(t, l.write())
	if in.State != Damaged {
		t.Errorf("%+v", in)
	}
	for _, f := range in.Files {
		if f.State == Damaged && (len(f.Problems) != 1 || f.Problems[0].Container != "log of orders" || f.Problems[0].ID != deathOf("bad", 1)) {
			t.Errorf("%+v", f)
		}
	}
}

// TestReadLeavesLogsOut: an export has the containers of users only.
func TestReadLeavesLogsOut(t *testing.T) {
	t.Parallel()
	dir := newLogged(t).write()
	names := make(map[string]int)
	err := Read(disk, dir, clock.NewManual(aoftest.Epoch+21_000), func(c record.Container) error {
		names[c.Name]++
		return nil
	}, func(container, id string, it record.Item) error {
		if names[container] == 0 || it.Kind == record.Entry {
			t.Errorf("%q of %q: %+v", id, container, it)
		}
		names[container]++
		return nil
	})
	if err != nil || len(names) != 18 || names["orders"] != 21 || names["carts"] != 21 {
		t.Errorf("%v, %v", names, err)
	}
}

// TestStartDropsWhatNoContainerHas: a start deletes a log that no container names, its groups, and what has
// no record; it keeps the rest, over a checkpoint and a restart.
func TestStartDropsWhatNoContainerHas(t *testing.T) {
	t.Parallel()
	l := newLogged(t)
	c := l.containers[ordersNumber]
	c.Log = nil
	l.add(c)
	l.entry(99, "stray", 1, 1)
	dir := l.write()
	for range 2 {
		o, err := openIn(t, dir, aoftest.Epoch+21_000, 3)
		drill.Check(t, err)
		o.checkpoint()
		o.stop()
		delete(l.items, "99~"+deathOf("stray", 1))
		l.drop(ordersLog)
		l.drop(mailerGroup)
		l.check(dir)
	}
}
