package keyspace

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/undo"
	"mayfly/test/drill"
)

// undoModel is a keyspace beside a model of it that keeps every item, and a stack of the changes of each
// name.
type undoModel struct {
	*opened
	random     *rand.Rand
	containers map[string]*undoContainer
	stacks     map[string][]undoChange
	window     int64 // seconds
	made       int   // containers
}

type undoContainer struct {
	policy expiry.Policy
	items  map[string]Item
	made   int // which of all containers that were made; a flush leaves it
}

// undoChange is a change that can be taken back: a rule, or a container that was flushed or dropped.
type undoChange struct {
	what    expiry.Action
	until   int64
	former  expiry.Policy
	aside   *undoContainer
	barrier bool // a change above it has gone to another name: the container of this one has lost its older rules
}

func (c *undoContainer) living(now int64) map[string]Item {
	all := make(map[string]Item)
	for id, it := range c.items {
		if !c.policy.Dead(it.TS, it.ExpireAt, now) {
			all[id] = it
		}
	}
	return all
}

func (m *undoModel) clone() (map[string]*undoContainer, map[string][]undoChange) {
	copied := make(map[*undoContainer]*undoContainer)
	clone := func(c *undoContainer) *undoContainer {
		if c != nil && copied[c] == nil {
			copied[c] = &undoContainer{c.policy, maps.Clone(c.items), c.made}
		}
		return copied[c]
	}
	containers, stacks := make(map[string]*undoContainer), make(map[string][]undoChange)
	for name, c := range m.containers {
		containers[name] = clone(c)
	}
	for name, s := range m.stacks {
		s = slices.Clone(s)
		for i := range s {
			s[i].aside = clone(s[i].aside)
		}
		stacks[name] = s
	}
	return containers, stacks
}

// push adds a change to the stack of a name.
func (m *undoModel) push(name string, c undoChange) {
	now := m.clock.Now()
	stack := slices.DeleteFunc(m.stacks[name], func(c undoChange) bool { return c.until <= now })
	if m.window == 0 {
		m.stacks[name] = nil
		return
	}
	c.until = now + 1000*m.window
	for i := range stack {
		stack[i].until = min(stack[i].until, c.until)
	}
	if len(stack) == expiry.MostWindows {
		stack = stack[1:]
	}
	m.stacks[name] = append(stack, c)
}

// undo takes the newest change of a name back and reports what it was, "" for nothing.
func (m *undoModel) undo(name, as string) (what expiry.Action, err error) {
	now := m.clock.Now()
	stack := slices.DeleteFunc(m.stacks[name], func(c undoChange) bool { return c.until <= now })
	m.stacks[name] = stack
	if len(stack) == 0 {
		return "", nil
	}
	last := len(stack) - 1
	c, live := stack[last], m.containers[name]
	if c.what == expiry.Set {
		if as != "" {
			return "", undo.ErrRuleAs
		}
		live.policy = c.former
		m.stacks[name] = stack[:last]
		return c.what, nil
	}
	if as == name && live == nil {
		as = ""
	}
	if as == "" && live != nil && len(live.living(now)) > 0 {
		return "", undo.ErrNotEmpty
	}
	if as == "" && live != nil && c.what == expiry.Dropped {
		return "", undo.ErrExists
	}
	if as == "" {
		if live != nil && live.made == c.aside.made {
			c.aside.policy = live.policy
		} else if live != nil {
			c.aside.policy = c.aside.policy.Change(live.policy.Default, expiry.Strict, now)
		}
		m.containers[name] = c.aside
		m.stacks[name] = stack[:last]
		if c.barrier && live != nil {
			m.stacks[name] = m.stacks[name][:m.below(stack[:last])]
		}
		return c.what, nil
	}
	if m.containers[as] != nil {
		return "", undo.ErrNameTaken
	}
	m.containers[as] = c.aside
	at := m.below(stack[:last])
	moved := slices.Clone(stack[at:last])
	older := slices.DeleteFunc(m.stacks[as], func(c undoChange) bool { return c.until <= now })
	m.stacks[as] = append(slices.Clone(older), moved...)
	m.stacks[name] = stack[:at]
	if at > 0 {
		m.stacks[name][at-1].barrier = true
	}
	return c.what, nil
}

// below returns the number of changes up to the newest that was no rule.
func (m *undoModel) below(stack []undoChange) int {
	for i, c := range slices.Backward(stack) {
		if c.what != expiry.Set {
			return i + 1
		}
	}
	return 0
}

// canLive reports whether an item of a container lives or would by a rule that can be brought back.
func (m *undoModel) canLive(name string) bool {
	now, c := m.clock.Now(), m.containers[name]
	if len(c.living(now)) > 0 {
		return true
	}
	for _, change := range slices.Backward(m.stacks[name]) {
		if change.until <= now || change.what != expiry.Set { // older rules return with the items before a flush
			break
		}
		if former := (&undoContainer{change.former, c.items, c.made}); len(former.living(now)) > 0 {
			return true
		}
	}
	return false
}

var undoNames = []string{"0", "a", "b", "c"}

// change makes a random change of the catalogue or of an item in a transaction and in the model.
func (m *undoModel) change(tx *Tx) {
	name := undoNames[m.random.IntN(len(undoNames))]
	c, model := tx.Container(name), m.containers[name]
	if (c != nil) != (model != nil) {
		m.t.Fatalf("container %s exists: %v, want %v", name, c != nil, model != nil)
	}
	if c == nil && m.random.IntN(3) == 0 {
		def := keptDefaults[m.random.IntN(len(keptDefaults))]
		tx.CreateContainer(name, def, expiry.Strict)
		m.made++
		m.containers[name] = &undoContainer{expiry.Policy{Default: def}, make(map[string]Item), m.made}
		return
	}
	switch step := m.random.IntN(24); {
	case step >= 18:
		as := ""
		if m.random.IntN(4) == 0 {
			as = undoNames[m.random.IntN(len(undoNames))]
		}
		want, wantErr := m.undo(name, as)
		done, err := tx.Undo(name, as)
		if nothingToUndo(err) {
			err = nil
		}
		got := expiry.Action("")
		if done != nil && err == nil {
			got = done.What
		}
		if got != want || !errors.Is(err, wantErr) {
			m.t.Fatalf("UNDO %s %s: %q, %v, want %q, %v", name, as, got, err, want, wantErr)
		}
	case c == nil:
	case step < 4:
		def := keptDefaults[m.random.IntN(len(keptDefaults))]
		if def == model.policy.Default {
			return
		}
		tx.SetPolicy(c, def, expiry.Strict)
		m.push(name, undoChange{what: expiry.Set, former: model.policy})
		model.policy = model.policy.Change(def, expiry.Strict, m.clock.Now())
	case step < 6:
		tx.Flush(c)
		if !m.canLive(name) {
			return
		}
		m.push(name, undoChange{what: expiry.Flushed, aside: model})
		m.containers[name] = &undoContainer{model.policy, make(map[string]Item), model.made}
	case step < 8 && !c.IsDatabase():
		tx.Drop(c)
		m.push(name, undoChange{what: expiry.Dropped, aside: model})
		delete(m.containers, name)
	case step == 8:
		other := undoNames[m.random.IntN(len(undoNames))]
		if o := tx.Container(other); o != nil && other != name {
			a, b := model, m.containers[other]
			forA := b.policy.Change(a.policy.Default, expiry.Strict, m.clock.Now())
			forB := a.policy.Change(b.policy.Default, expiry.Strict, m.clock.Now())
			a.items, b.items = b.items, a.items
			a.policy, b.policy = forA, forB
			m.stacks[name], m.stacks[other] = nil, nil
			tx.Swap(c, o)
		}
	case step < 16:
		id := fmt.Sprint(m.random.IntN(20))
		end := []int64{expiry.Inherit, expiry.Inherit, expiry.Never, m.clock.Now() + 1000*int64(1+m.random.IntN(40)), expiry.CapAt(m.clock.Now() + 1000*int64(1+m.random.IntN(40)))}[m.random.IntN(5)]
		model.items[id] = tx.Put(c, id, Document, fmt.Sprintf(`{"n":%d}`, m.random.IntN(5)), end)
	default:
		id := fmt.Sprint(m.random.IntN(20))
		tx.Delete(c, id)
		delete(model.items, id)
	}
}

func (m *undoModel) step() {
	switch step := m.random.IntN(40); step {
	case 0, 1, 2, 3, 4, 5:
		m.clock.Advance(time.Duration(m.random.IntN(6000)) * time.Millisecond)
	case 6:
		m.stop()
		m.start()
		m.setWindow()
	case 7:
		m.kill()
		m.setWindow()
	case 8:
		m.window = []int64{0, 5, 30, 60, 60}[m.random.IntN(5)]
		m.setWindow()
	case 9:
		m.PurgeOnce()
		m.EndWindows()
	case 10:
		if m.random.IntN(5) == 0 {
			m.EndAllWindows()
			clear(m.stacks)
		}
	case 11, 12, 13: // taken back as a whole
		containers, stacks := m.clone()
		var tx Tx
		m.BeginAll(&tx)
		for range 1 + m.random.IntN(6) {
			m.change(&tx)
		}
		tx.Rollback()
		m.containers, m.stacks = containers, stacks
		drill.Check(m.t, m.Check())
	case 14, 15, 16:
		m.compare()
	default:
		m.catalogueTx(func(tx *Tx) {
			for range 1 + m.random.IntN(3) {
				m.change(tx)
			}
		})
	}
}

func (m *undoModel) setWindow() {
	drill.Check(m.t, m.SetUndoWindow(m.window))
}

// compare compares what lives with the model.
func (m *undoModel) compare() {
	want := make(map[place]Item)
	for name, c := range m.containers {
		living := c.living(m.clock.Now())
		for id, it := range living {
			want[place{name, id}] = it
		}
		if n := m.count(name); n != len(living) {
			m.t.Fatalf("%s has %d items, want %d", name, n, len(living))
		}
	}
	got := m.dump()
	for at, it := range want {
		if got[at] != it {
			m.t.Fatalf("%v is %+v, want %+v", at, got[at], it)
		}
	}
	if len(got) != len(want) {
		m.t.Fatalf("%d items live, want %d", len(got), len(want))
	}
}

// TestUndoModel takes random steps with an undo window and compares with a model after each few: rules,
// flushes, drops, creations, swaps, writes, rollbacks, moves of the clock, restarts, kills, ends of all
// windows.
func TestUndoModel(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 3, 6, 600, func(t *testing.T, seed uint64) {
		m := &undoModel{
			opened: open(t, func(o *Options) { o.Partitions = 2 }), random: rand.New(rand.NewPCG(seed, 11)),
			containers: map[string]*undoContainer{"0": {expiry.Policy{Default: expiry.Forever}, make(map[string]Item), 0}},
			stacks:     make(map[string][]undoChange), window: 60,
		}
		m.setWindow()
		for range 500 {
			m.step()
		}
		m.compare()
		m.clock.Advance(time.Hour)
		m.EndWindows()
		m.compare()
		held := 0
		for _, t := range m.tables.Some(nil, 0, m.tables.Len()) {
			held += t.Len()
		}
		if aside := slices.Collect(m.catalogue.Asides.All()); held != len(m.dump()) || len(aside) > 0 {
			t.Errorf("%d items are in memory, %d live, %d are set aside", held, len(m.dump()), len(aside))
		}
	})
}
