package keyspace

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/repair"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
)

// changeGroup changes a group of a container's log.
func (o *opened) changeGroup(container, group string, f func(b *groups.Changes)) {
	o.t.Helper()
	var tx Tx
	o.BeginKey(&tx, GroupTag)
	tx.ChangeGroup(tx.Container(container), group, f)
	o.commit(&tx)
}

func (o *opened) createGroup(container, group string) {
	o.t.Helper()
	o.all(func(tx *Tx) { tx.CreateGroup(tx.Container(container), group, streamid.ID{}, 0) })
}

// groups returns the items of all groups of a container by name.
func (o *opened) groups(container string) map[string]map[string]string {
	o.t.Helper()
	all := map[string]map[string]string{}
	o.all(func(tx *Tx) {
		c := tx.Container(container)
		if c == nil {
			return
		}
		for _, name := range tx.Groups(c) {
			all[name] = maps.Collect(tx.Group(c, name).Items())
		}
	})
	return all
}

// deliver delivers entries with the first ids to a consumer.
func deliver(n uint64, consumer string) func(b *groups.Changes) {
	return func(b *groups.Changes) {
		var ids []streamid.ID
		for ms := range n {
			ids = append(ids, streamid.ID{Ms: ms + 1})
		}
		b.Deliver(&groups.Stream{Added: int64(n), Length: int64(n), Last: ids[n-1]}, ids, consumer, epoch, false)
	}
}

// equalGroups compares what groups returns.
func equalGroups(a, b map[string]map[string]string) bool {
	return maps.EqualFunc(a, b, func(x, y map[string]string) bool { return maps.Equal(x, y) })
}

// someGroups makes groups with consumers and pending entries.
func someGroups(t *testing.T) *opened {
	o := open(t)
	o.createLogged("jobs", 10)
	o.createGroup("jobs", "mail")
	o.createGroup("jobs", "\x00\xff bytes")
	o.createGroup("jobs", "")
	o.changeGroup("jobs", "mail", deliver(5, "w1"))
	o.changeGroup("jobs", "mail", func(b *groups.Changes) {
		b.Ack([]streamid.ID{{Ms: 2}})
		b.Claim(streamid.ID{Ms: 3}, &groups.Claim{Consumer: "w\n2", Now: epoch + 5, Time: epoch + 5, Count: -1})
	})
	o.changeGroup("jobs", "", deliver(2, ""))
	return o
}

// Groups are the same after a stop, and after a kill: a copy of the folder of a running server has them.
func TestGroupsSurviveRestarts(t *testing.T) {
	t.Parallel()
	o := someGroups(t)
	want := o.groups("jobs")
	if n := len(want["mail"]); n != 1+2+4 {
		t.Fatalf("the group has %d items: %q", n, want["mail"])
	}
	killed := newDir(o.opt.FS)
	copyFolder(t, o.opt.FS, o.opt.Dir, killed)
	k := open(t, func(opt *Options) { opt.FS, opt.Dir = o.opt.FS, killed })
	if got := k.groups("jobs"); !equalGroups(got, want) {
		t.Errorf("after a kill: %q, want %q", got, want)
	}
	for range 2 {
		o.reopen()
		if got := o.groups("jobs"); !equalGroups(got, want) {
			t.Fatalf("after a restart: %q, want %q", got, want)
		}
		o.changeGroup("jobs", "mail", func(b *groups.Changes) { b.Ack([]streamid.ID{{Ms: 4}}); b.DeleteConsumer("w\n2") })
		want = o.groups("jobs")
	}
}

// A rollback takes groups back that were made, changed and destroyed.
func TestGroupsRollBack(t *testing.T) {
	t.Parallel()
	o := someGroups(t)
	want, memory := o.groups("jobs"), o.catalogue.Memory()
	for name, f := range map[string]func(tx *Tx, c *Container){
		"create":  func(tx *Tx, c *Container) { tx.CreateGroup(c, "new", streamid.ID{Ms: 1}, 1) },
		"destroy": func(tx *Tx, c *Container) { tx.DestroyGroup(c, "mail") },
		"change":  func(tx *Tx, c *Container) { tx.ChangeGroup(c, "mail", deliver(9, "w9")) },
		"all": func(tx *Tx, c *Container) {
			tx.CreateGroup(c, "new", streamid.ID{}, 0)
			tx.ChangeGroup(c, "new", deliver(3, "w"))
			tx.ChangeGroup(c, "new", func(b *groups.Changes) { b.DeleteConsumer("w") })
			tx.ChangeGroup(c, "mail", deliver(3, "w"))
			tx.ChangeGroup(c, "mail", func(b *groups.Changes) { b.DeleteConsumer("w1") })
			tx.DestroyGroup(c, "mail")
			tx.CreateGroup(c, "mail", streamid.ID{}, 0)
			tx.DestroyGroup(c, "new")
		},
		"off":  func(tx *Tx, c *Container) { _ = tx.SetLog(c, LogSettings{}) },
		"drop": func(tx *Tx, c *Container) { tx.Drop(c) },
	} {
		var tx Tx
		o.BeginAll(&tx)
		f(&tx, tx.Container("jobs"))
		lsn := tx.Rollback()
		drill.Check(t, o.Wait(lsn))
		if got := o.groups("jobs"); !equalGroups(got, want) {
			t.Errorf("%s: %q after the rollback, want %q", name, got, want)
		}
		if got := o.catalogue.Memory(); got != memory {
			t.Errorf("%s: %d bytes after the rollback, want %d", name, got, memory)
		}
		if err := o.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	o.reopen()
	if got := o.groups("jobs"); !equalGroups(got, want) {
		t.Errorf("%q after a restart, want %q", got, want)
	}
}

// Groups end with their log, and go where it goes.
func TestGroupsFollowTheirLog(t *testing.T) {
	t.Parallel()
	o := someGroups(t)
	want := o.groups("jobs")
	o.all(func(tx *Tx) { tx.Flush(tx.Container("jobs")) })
	o.all(func(tx *Tx) { tx.CreateContainer("other", 10, expiry.Strict) })
	o.all(func(tx *Tx) { tx.Swap(tx.Container("jobs"), tx.Container("other")) })
	o.reopen()
	if got := o.groups("jobs"); !equalGroups(got, want) {
		t.Errorf("after FLUSH and SWAPDB: %q, want %q", got, want)
	}
	drill.Check(t, o.SetUndoWindow(60))
	o.all(func(tx *Tx) { tx.Drop(tx.Container("jobs")) })
	o.reopen()
	if got := o.groups("jobs"); len(got) != 0 {
		t.Errorf("after DROP: %q", got)
	}
	drill.Check(t, o.SetUndoWindow(60))
	o.all(func(tx *Tx) {
		if _, err := tx.Undo("jobs", "jobs"); err != nil {
			t.Error(err)
		}
	})
	o.reopen()
	if got := o.groups("jobs"); !equalGroups(got, want) {
		t.Errorf("after UNDO: %q, want %q", got, want)
	}
	o.setLog("jobs", LogSettings{})
	o.setLog("jobs", anHour)
	o.reopen()
	if got := o.groups("jobs"); len(got) != 0 {
		t.Errorf("after LOG OFF: %q", got)
	}
	for number, h := range o.catalogue.Hidden {
		if h.hidden.IsGroup() {
			t.Errorf("group %q, container %d, is left", h.hidden.Group, number)
		}
	}
}

// A folder with an item in a group that no start can read is damaged, as the check says.
func TestCheckTellsOfAnItemThatIsNotOfAGroup(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.createLogged("jobs", 10)
	o.createGroup("jobs", "mail")
	var tx Tx
	o.BeginKey(&tx, GroupTag)
	h := tx.findGroup(tx.Container("jobs"), "mail")
	tx.setGroupItem(h, GroupTag+"8-8", "1 1 w")
	tx.setGroupItem(h, GroupTag+"9-9", "once")
	o.commit(&tx)
	drill.Report(t, o.Close())
	in, err := repair.Inspect(o.opt.FS, o.opt.Dir)
	if err != nil {
		t.Error(err)
	} else {
		var ids []string
		for _, f := range in.Files {
			for _, p := range f.Problems {
				ids = append(ids, p.ID)
			}
		}
		if in.State != repair.Damaged || !slices.Equal(ids, []string{GroupTag + "9-9"}) {
			t.Errorf("the folder is %v, with problems of %q", in.State, ids)
		}
	}
	if ks, err := Open(o.opt); err == nil {
		ks.Close()
		t.Error("the folder can be opened")
	}
	o.opt.Dir = newDir(o.opt.FS) // for the end of the test
	o.start()
}

// Groups count in the memory of the keyspace.
func TestGroupsCountAsMemory(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.createLogged("jobs", 10)
	before := o.Used()
	o.createGroup("jobs", "mail")
	o.changeGroup("jobs", "mail", deliver(1000, "w"))
	const least = 1000 * 88
	if got := o.Used() - before; got < least {
		t.Errorf("1000 pending entries take %d bytes, want at least %d", got, least)
	}
	o.all(func(tx *Tx) { tx.DestroyGroup(tx.Container("jobs"), "mail") })
	for range 100 {
		o.all(func(*Tx) {}) // frees the records
	}
	if got := o.Used() - before; got > least/4 {
		t.Errorf("%d bytes are left of a group that was destroyed", got)
	}
}

// OnLogged hears of a group that goes.
func TestDestroyingAGroupIsSignaled(t *testing.T) {
	t.Parallel()
	var heard []string
	o := open(t, func(opt *Options) { opt.OnLogged = func(container string) { heard = append(heard, container) } })
	o.createLogged("jobs", 10)
	o.createGroup("jobs", "mail")
	heard = nil
	o.all(func(tx *Tx) {
		if tx.DestroyGroup(tx.Container("jobs"), "none") {
			t.Error("a group that does not exist is destroyed")
		}
	})
	if len(heard) > 0 {
		t.Errorf("heard of %q", heard)
	}
	o.all(func(tx *Tx) { tx.DestroyGroup(tx.Container("jobs"), "mail") })
	if !slices.Equal(heard, []string{"jobs"}) {
		t.Errorf("heard of %q", heard)
	}
}

// Many groups of several containers are loaded each by its log.
func TestManyGroups(t *testing.T) {
	t.Parallel()
	o := open(t)
	want := map[string]map[string]map[string]string{}
	for _, c := range []string{"a", "b", "c"} {
		o.createLogged(c, 10)
		for n := range 20 {
			name := fmt.Sprint("g", n)
			o.createGroup(c, name)
			o.changeGroup(c, name, deliver(uint64(n+1), c))
		}
		want[c] = o.groups(c)
	}
	o.reopen()
	for c, groups := range want {
		if got := o.groups(c); !equalGroups(got, groups) {
			t.Errorf("%s: %q, want %q", c, got, groups)
		}
	}
}

// TestAllWindowsEndBesideManyGroups: what is set aside with many groups goes little by little. The windows of
// the container of its name end at once all the same.
func TestAllWindowsEndBesideManyGroups(t *testing.T) {
	t.Parallel()
	o := open(t, func(o *Options) { o.noCheckpoints = true })
	o.stopBackground()
	drill.Check(t, o.SetUndoWindow(60))
	o.createLogged("jobs", 1000)
	o.all(func(tx *Tx) {
		for i := range 2 * groupsAtOnce {
			tx.CreateGroup(tx.Container("jobs"), fmt.Sprint(i), streamid.ID{}, 0)
		}
	})
	o.all(func(tx *Tx) { tx.Drop(tx.Container("jobs")) })
	o.policy("jobs", 1000)
	o.put("jobs", "d", "{}", expiry.Inherit)
	o.elapse(20_000)
	o.policy("jobs", 10)
	for _, open := range []bool{true, false} {
		o.all(func(tx *Tx) {
			if got := tx.Container("jobs").retention.Open(tx.Now()); got != open {
				t.Errorf("a window is open: %t, want %t", got, open)
			}
		})
		o.EndAllWindows()
	}
	drill.Check(t, o.Check())
}

// What has a great many groups goes little by little: a change under all locks touches none of them, and a
// crash brings nothing back.
func TestManyGroupsGoLittleByLittle(t *testing.T) {
	t.Parallel()
	drop := func(tx *Tx) { tx.Drop(tx.Container("jobs")) }
	for name, way := range map[string]struct {
		window int64
		change func(tx *Tx)
		after  func(o *opened)
	}{
		"drop":          {0, drop, func(*opened) {}},
		"end of window": {60, drop, func(o *opened) { o.elapse(60_000) }},
		"all windows":   {60, drop, func(o *opened) { o.EndAllWindows() }},
		"window limited": {60, drop, func(o *opened) {
			drill.Check(o.t, o.SetUndoWindow(0))
			o.all(func(tx *Tx) { tx.Drop(tx.CreateContainer("jobs", 60, expiry.Strict)) })
		}},
		"log off": {0, func(tx *Tx) {
			drill.Report(t, tx.SetLog(tx.Container("jobs"), LogSettings{}))
		}, func(*opened) {}},
	} {
		test := func(t *testing.T, restarts bool) {
			t.Parallel()
			const n = 3 * groupsAtOnce
			o := open(t, func(o *Options) { o.noCheckpoints = true })
			o.stopBackground()
			f := newMirror(t, o)
			defer f.ks.Close()
			drill.Check(t, o.SetUndoWindow(way.window))
			o.createLogged("jobs", 10)
			o.all(func(tx *Tx) {
				for i := range n {
					tx.CreateGroup(tx.Container("jobs"), fmt.Sprint(i), streamid.ID{}, 0)
				}
			})
			var tx Tx
			o.BeginAll(&tx)
			way.change(&tx)
			tx.Rollback() // then it is as before
			drill.Check(t, o.Check())
			o.all(way.change)
			if got := len(o.catalogue.Hidden); got != n+1 {
				t.Fatalf("%d hidden containers are left", got)
			}
			f.compare()
			way.after(o)
			for want := n + 1; want > 0; {
				if want -= groupsAtOnce; want < groupsAtOnce {
					want = 0
				}
				o.endSome(o.ended())
				if got := len(o.catalogue.Hidden); got != want {
					t.Fatalf("%d hidden containers are left, want %d", got, want)
				}
				o.all(func(tx *Tx) {
					if _, err := tx.Undo("jobs", ""); err == nil {
						t.Error("it was brought back")
					}
				})
				if restarts {
					o.reopen()
					o.stopBackground()
				} else {
					f.compare()
				}
			}
			o.EndWindows()
			if list := slices.Collect(o.catalogue.Asides.All()); len(list) > 0 {
				t.Errorf("%d containers are set aside", len(list))
			}
		}
		t.Run(name, func(t *testing.T) { test(t, false) })
		t.Run(name+", restarts", func(t *testing.T) { test(t, true) })
	}
}
