package keyspace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/index"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/replica"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// mirror is a follower that gets what the journal of a leader has.
type mirror struct {
	t         *testing.T
	leader    *opened
	ks        *Keyspace
	clock     *clock.Manual
	opt       Options
	index     uint64
	rollbacks bool   // ids of entries that were taken back are used up at the leader
	file      uint64 // generation of the leader's journal
	offset    int64
}

func newMirror(t *testing.T, leader *opened) *mirror {
	fsys := vfstest.NewMemory()
	m := &mirror{t: t, leader: leader, clock: clock.NewManual(leader.clock.Now())}
	m.opt = Options{FS: fsys, Dir: newDir(fsys), Clock: m.clock, NoPurge: true, noCheckpoints: true, noSweeps: true, Partitions: leader.opt.Partitions, Replicator: newFakeLog().seat()}
	var err error
	if m.ks, err = Open(m.opt); err != nil {
		t.Fatal(err)
	}
	return m
}

// ship applies what the leader has committed.
func (m *mirror) ship() {
	m.t.Helper()
	drill.Check(m.t, m.leader.journal.CommitAll())
	m.clock.Advance(time.Duration(m.leader.clock.Now()-m.clock.Now()) * time.Millisecond)
	for _, f := range m.leader.journal.Files() {
		if f.Generation < m.file {
			continue
		}
		if f.Generation > m.file {
			m.file, m.offset = f.Generation, 0
		}
		text, err := vfs.ReadFile(m.leader.opt.FS, f.Path)
		drill.Check(m.t, err)
		m.read(string(text[m.offset:f.Size]))
		m.offset = f.Size
	}
	m.ks.clock.Follow(m.clock.Now()) // also if nothing was committed
}

func (m *mirror) read(text string) {
	m.t.Helper()
	batch := text
	for rest := text; rest != ""; {
		o, next, ok := aof.Cut(rest)
		if !ok {
			m.t.Fatal("no command")
		}
		if o.Key == aof.SealKey {
			if b := batch[:len(batch)-len(rest)]; b != "" {
				m.index++
				if err := m.ks.Apply(strings.Clone(b), replica.Tail{Position: replica.Position{Index: m.index, Term: 1, Moment: m.clock.Now()}}); err != nil {
					m.t.Fatalf("%v\n%.10000q", err, b)
				}
			}
			batch = next
		}
		rest = next
	}
}

// compare compares the follower with the leader.
func (m *mirror) compare() {
	m.t.Helper()
	m.ship()
	now := m.leader.clock.Now()
	want, got := m.leader.describe(now, !m.rollbacks), m.ks.describe(now, !m.rollbacks)
	if d := difference(want, got); d != "" {
		m.t.Fatalf("the follower differs from the leader: %s", d)
	}
	a, n := m.leader.DigestAt(now)
	b, k := m.ks.DigestAt(now)
	if a != b || n != k {
		m.t.Fatalf("the digest of the leader is %x of %d items, that of the follower %x of %d", a, n, b, k)
	}
	if err := m.ks.Check(); err != nil {
		m.t.Fatal("the follower: ", err)
	}
	if err := m.leader.Check(); err != nil {
		m.t.Fatal("the leader: ", err)
	}
}

// compareReopened compares the follower with what its folder has.
func (m *mirror) compareReopened() {
	m.t.Helper()
	drill.Check(m.t, m.ks.Halt())
	opt := m.opt
	opt.Dir = newDir(m.opt.FS)
	m.ks.storage.Lock()
	copyFolder(m.t, m.opt.FS, m.ks.Dir(), opt.Dir)
	m.ks.storage.Unlock()
	opt.Clock = clock.NewManual(m.clock.Now())
	fresh, err := Open(opt)
	drill.Check(m.t, err)
	defer fresh.storage.Abandon()
	now := m.clock.Now()
	if d := difference(m.ks.describe(now, true), fresh.describe(now, true)); d != "" {
		m.t.Fatalf("the folder of the follower differs from its memory: %s", d)
	}
}

func difference(want, got []string) string {
	for i := range max(len(want), len(got)) {
		a, b := "nothing", "nothing"
		if i < len(want) {
			a = want[i]
		}
		if i < len(got) {
			b = got[i]
		}
		if a != b {
			return fmt.Sprintf("\nwant %s\ngot  %s\nbehind %s", a, b, strings.Join(want[max(0, min(i, len(want))-3):min(i, len(want))], "\n"))
		}
	}
	return ""
}

// describe describes all that follows from the state of a keyspace at a moment, in lines.
func (ks *Keyspace) describe(now int64, ids bool) (lines []string) {
	var tx Tx
	ks.lockAll(&tx)
	defer tx.Close()
	tx.now = now
	cat := &ks.catalogue
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	all := slices.Clone(cat.List())
	all = slices.AppendSeq(all, cat.Asides.All())
	for _, h := range cat.Hidden {
		all = append(all, h)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].number < all[j].number })
	for _, c := range all {
		add("container %d: %s, memory %d, db %d, retention %+v, limits %+v", c.number, c.record().Append(nil), c.memory()-c.history.Load().Memory, c.db, c.retention, c.Policy().DeadLimits(now))
		add("container %d: listed %v, aside %v, hidden %v", c.number, cat.ByName[c.name] == c, slices.Contains(cat.Asides.Of(c.name), c), cat.Hidden[c.number] == c)
		if c.deaths != nil {
			s, _ := tx.Deaths(c).State()
			last := c.deaths.ids.Last()
			if !ids {
				s.Last, last = streamid.ID{}, streamid.ID{}
			}
			add("container %d: log %d, %d entries, ids up to %v, state %+v, groups %v", c.number, c.deaths.c.number, c.deaths.length.Load(), last, s, sortedKeys(c.deaths.groups))
		}
		if c.owner() != nil {
			add("container %d: belongs to %d", c.number, c.owner().number)
		}
		if c.group != nil {
			var items []string
			for item, body := range c.group.Items() {
				items = append(items, item+"="+body)
			}
			sort.Strings(items)
			add("container %d: group %q, memory %d", c.number, items, c.group.Memory())
		}
		for n, t := range c.tables {
			if t != nil {
				ks.describeTable(c, n, t, now, add)
			}
		}
	}
	return lines
}

func sortedKeys(m map[string]*Container) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	sort.Strings(list)
	return list
}

func (ks *Keyspace) describeTable(c *Container, n int, t *table, now int64, add func(format string, args ...any)) {
	var items []string
	gone := c.retention.Purgeable(c.Policy(), now)
	t.Descend(0, func(_ uint64, e *memtable.Entry) bool {
		if c.hidden != nil || !e.Within(gone) {
			key, rec, body := t.KeyAndRecord(e)
			items = append(items, fmt.Sprintf("%s=%s%s, %d bytes", key, rec, body, e.Memory()))
		}
		return true
	})
	if !t.Log() {
		sort.Strings(items)
	}
	if len(items) > 0 {
		add("table %d/%d, place %v, %d items\n\t%s", c.number, n, t.Gone(), len(items), strings.Join(items, "\n\t"))
	}
}

// TestApplyUndoModel: a follower of a leader that takes the steps of TestUndoModel is what the leader is.
func TestApplyUndoModel(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 2, 4, 200, func(t *testing.T, seed uint64) {
		m := &undoModel{
			opened: open(t, func(o *Options) { o.Partitions = 2; o.noCheckpoints = true }), random: rand.New(rand.NewPCG(seed, 12)),
			containers: map[string]*undoContainer{"0": {expiry.Policy{Default: expiry.Forever}, make(map[string]Item), 0}},
			stacks:     make(map[string][]undoChange), window: 60,
		}
		m.setWindow()
		f := newMirror(t, m.opened)
		defer f.ks.Close()
		for i := range 400 {
			m.catalogueTx(func(tx *Tx) {
				for range 1 + m.random.IntN(3) {
					m.change(tx)
				}
			})
			switch m.random.IntN(12) {
			case 0, 1:
				m.clock.Advance(time.Duration(m.random.IntN(6000)) * time.Millisecond)
			case 2:
				m.PurgeOnce()
				m.EndWindows()
			case 3:
				f.ks.PurgeOnce()
			case 4:
				if m.random.IntN(5) == 0 {
					m.EndAllWindows()
					clear(m.stacks)
				}
			case 5:
				m.window = []int64{0, 5, 30, 60, 60}[m.random.IntN(5)]
				m.setWindow()
			}
			if m.random.IntN(4) == 0 {
				f.compare()
			}
			if i%50 == 49 {
				f.compareReopened()
			}
		}
	})
}

// TestApplyUndoAfterRestart: a follower that has started while a container with an index was set aside has
// its index once the leader brings it back.
func TestApplyUndoAfterRestart(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	leader, follower := newNode(t, log), newNode(t, log)
	leader.lead()
	drill.Check(t, leader.SetUndoWindow(60))
	d, err := index.Define([]string{"/a"}, false)
	drill.Check(t, err)
	settle := func(f func(tx *Tx)) {
		leader.mustWait(leader.catalogue(f))
		follower.follow()
	}
	settle(func(tx *Tx) {
		c := tx.CreateContainer("c", expiry.Forever, expiry.Strict)
		tx.CreateIndex(c, d)
		tx.Put(c, "x", Document, `{"a":1}`, expiry.Inherit)
	})
	for what, remove := range map[string]func(tx *Tx){
		"flush": func(tx *Tx) { tx.Flush(tx.Container("c")) },
		"drop":  func(tx *Tx) { tx.Drop(tx.Container("c")) },
	} {
		settle(remove)
		drill.Check(t, follower.Close())
		follower.open()
		follower.follow()
		settle(func(tx *Tx) {
			if _, err := tx.Undo("c", ""); err != nil {
				t.Fatal(err)
			}
		})
		follower.BuildIndexes()
		var tx Tx
		follower.BeginAll(&tx)
		c := tx.Container("c")
		entries := 0
		for table := range c.each {
			n, _ := table.Indexed.Size()
			entries += int(n)
		}
		if ready := c.Indexes()[0].Ready(); !ready || entries != 1 {
			t.Errorf("%s: the index is ready: %v, and has %d entries", what, ready, entries)
		}
		tx.Close()
		if err := follower.Check(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	leader.abandon()
	follower.abandon()
}
