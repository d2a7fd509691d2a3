package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"mayfly/cluster/entry"
)

// checker knows what every node has applied at each index, and what clients were told.
type checker struct {
	w       *world
	first   version
	log     []checked // of the entries after first
	current entry.State
	ops     []*op
	values  uint64
	at      map[uint64]int // position of a committed write in its key's order, by value
	order   [keys]int
	served  int64 // the greatest now of any committed write
}

// checked is an entry that was applied somewhere.
type checked struct {
	term  uint64
	kind  entry.Kind
	lsn   uint64
	void  bool
	after version
}

// op is a client's command.
type op struct {
	client     int
	key        int
	write      bool
	value      uint64 // written, or read
	start, end time.Duration
	now        int64
	done       bool // end and value are known
	over       bool // the client does not wait any more
}

func (c *checker) start(v version) {
	c.first = v
	c.at = map[uint64]int{0: 0}
	c.current, _ = entry.DecodeState(v.state)
}

// state returns the cluster as of the last entry that any node has applied.
func (c *checker) state() entry.State { return c.current }

func (c *checker) newValue() uint64 {
	c.values++
	return c.values
}

// applied checks an entry that a node has applied, and its files after it: all nodes have the same.
func (c *checker) applied(i *incarnation, e *entry.Entry, v version) {
	n := e.Index - c.first.at.index
	switch {
	case e.Index <= c.first.at.index || n > uint64(len(c.log))+1:
		c.w.fail("%s applies entry %d after %d", i.machine.name(), e.Index, len(c.log))
		return
	case n == uint64(len(c.log))+1:
		c.commit(i, e, v)
	}
	was := c.log[n-1]
	if was.term != e.Term || was.kind != e.Kind || was.lsn != e.LSN || was.void != e.Void ||
		was.after.regs != v.regs || was.after.moment != v.moment || was.after.promise != v.promise || string(was.after.state) != string(v.state) {
		c.w.fail("%s applies entry %d as %v term %d lsn %d void %t %v, another node as %v term %d lsn %d void %t %v", i.machine.name(), e.Index,
			e.Kind, e.Term, e.LSN, e.Void, v.regs, was.kind, was.term, was.lsn, was.void, was.after.regs)
	}
	if !i.unsettled() {
		for k, cell := range i.regs {
			if cell.value != v.regs[k] {
				c.w.fail("%s serves %d for key %d at entry %d, the log says %d", i.machine.name(), cell.value, k, e.Index, v.regs[k])
			}
		}
	}
}

// commit takes the entry that comes next.
func (c *checker) commit(i *incarnation, e *entry.Entry, v version) {
	before := c.first
	if len(c.log) > 0 {
		before = c.log[len(c.log)-1].after
	}
	c.w.note("entry %d of term %d: %s session %d lsn %d void %t by %s", e.Index, e.Term, e.Kind, e.Session, e.LSN, e.Void, i.machine.name())
	c.log = append(c.log, checked{term: e.Term, kind: e.Kind, lsn: e.LSN, void: e.Void, after: v})
	if e.State != nil {
		c.changed(e)
	}
	switch {
	case e.Kind == entry.Begin && e.Session != e.Term:
		c.w.fail("session %d begins in term %d", e.Session, e.Term)
	case e.Kind != entry.Batch:
		return
	case e.Void != (e.Session != c.current.Session):
		c.w.fail("a batch of session %d in session %d is void: %t", e.Session, c.current.Session, e.Void)
	case e.Session != c.current.Session && v.regs != before.regs:
		c.w.fail("a batch of session %d was applied in session %d", e.Session, c.current.Session)
	case e.Void:
		return
	}
	promise, writes := decodeBatch(e.Batch)
	if e.Moment < before.moment || promise < before.promise {
		c.w.fail("moment %d and lease %d follow %d and %d", e.Moment, promise, before.moment, before.promise)
	}
	now := c.served
	regs := before.regs
	for _, w := range writes {
		if w.prev != regs[w.key] {
			c.w.fail("the leader of session %d changed key %d from %d to %d, the log has %d", e.Session, w.key, w.prev, w.value, regs[w.key])
		}
		if w.now < before.moment || w.now < c.served {
			c.w.fail("a write of %d after moment %d and a write of %d", w.now, before.moment, c.served)
		}
		now = max(now, w.now)
		regs[w.key] = w.value
		c.order[w.key]++
		c.at[w.value] = c.order[w.key]
	}
	c.served = now
}

// changed follows the members; one that has left is switched off.
func (c *checker) changed(e *entry.Entry) {
	state, err := entry.DecodeState(e.State)
	if err != nil {
		c.w.fail("state of entry %d: %v", e.Index, err)
	}
	if state.Session < c.current.Session {
		c.w.fail("session %d begins after session %d", state.Session, c.current.Session)
	}
	c.current = state
	c.w.note("members %v voters %v learners %v", state.Members, state.Voters, state.Learners)
	for _, m := range c.w.machines {
		id := m.id
		if !m.leaves || state.WithID(id) != nil || state.Voter(id) || state.Learner(id) {
			continue
		}
		m.leaves = false
		c.w.after(c.w.between(500*time.Millisecond, 3*time.Second), func() {
			if m.id == id {
				m.gone = true
				m.kill(false)
			}
		})
	}
}

// opens checks that no other node has a lease of an earlier session when one opens. Of a later one it may: a
// deposed leader that is slow to apply its begin opens its session late.
func (c *checker) opens(i *incarnation, session uint64) {
	c.w.note("session %d opens at %s", session, i.machine.name())
	for _, m := range c.w.machines {
		if m != i.machine && m.inc != nil && m.inc.lease > m.local() && m.inc.core.Session() < session {
			c.w.fail("session %d opens at %s, %s has a lease for %s", session, i.machine.name(), m.name(), m.inc.lease-m.local())
		}
	}
}

// leased checks that one node at most has a lease.
func (c *checker) leased(i *incarnation) {
	for _, m := range c.w.machines {
		if m != i.machine && m.inc != nil && m.inc.lease > m.local() {
			c.w.fail("%s and %s have a lease, of sessions %d and %d", i.machine.name(), m.name(), i.core.Session(), m.inc.core.Session())
		}
	}
}

const clients = 8

// client executes a command at some node, then the next one.
func (w *world) client(number int) {
	m := w.machines[w.rand.IntN(len(w.machines))]
	if leader := w.leader(); leader != nil && w.chance(0.9) {
		m = leader
	}
	o := &op{client: number, key: w.rand.IntN(keys), start: w.now}
	o.write = w.chance(0.5) && w.now >= w.quiet && (w.now >= w.pensive || m != w.spared)
	if o.write {
		o.value = w.checker.newValue()
	}
	w.checker.ops = append(w.checker.ops, o)
	w.after(w.between(0, 2*time.Millisecond), func() {
		inc := m.inc
		if inc == nil {
			return
		}
		inc.machine.after(0, func() { inc.execute(o) })
	})
	w.after(w.between(600*time.Millisecond, 3*time.Second), func() { w.checker.over(o) })
}

// over lets the client go on with its next command.
func (c *checker) over(o *op) {
	if !o.over {
		o.over = true
		c.w.after(c.w.between(5*time.Millisecond, 100*time.Millisecond), func() { c.w.client(o.client) })
	}
}

// refused means that a command had no effect.
func (c *checker) refused(o *op) { c.over(o) }

// ends takes the reply to a command.
func (c *checker) ends(o *op, value uint64, now int64) {
	if o == nil || o.over {
		return
	}
	if _, ok := c.at[value]; !ok {
		c.w.fail("a client was told the value %d of key %d, which is not committed", value, o.key)
	}
	o.done, o.end, o.value, o.now = true, c.w.now, value, now
	c.over(o)
}

// linearizable checks the replies: the order of the writes of a key is that of the log, so each command has
// its place in it, and no command may be before one that had ended when it started.
func (c *checker) linearizable() {
	for key := range keys {
		var ops []*op
		for _, o := range c.ops {
			if o.key == key && o.done {
				ops = append(ops, o)
			}
		}
		byStart := slices.Clone(ops)
		slices.SortFunc(byStart, func(a, b *op) int { return cmp.Compare(a.start, b.start) })
		slices.SortFunc(ops, func(a, b *op) int { return cmp.Compare(a.end, b.end) })
		var last *op
		for _, o := range byStart {
			for len(ops) > 0 && ops[0].end < o.start {
				if last == nil || c.at[ops[0].value] > c.at[last.value] {
					last = ops[0]
				}
				ops = ops[1:]
			}
			if last != nil && (c.at[o.value] < c.at[last.value] || o.write && c.at[o.value] == c.at[last.value]) {
				c.w.fail("key %d: %s comes before %s in the log", key, o, last)
			}
		}
	}
}

func (o *op) String() string {
	name := "read"
	if o.write {
		name = "write"
	}
	return fmt.Sprintf("%s of %d from %.3f to %.3f s", name, o.value, o.start.Seconds(), o.end.Seconds())
}

// acknowledged returns how many writes and reads were answered.
func (c *checker) acknowledged() (writes, reads int) {
	for _, o := range c.ops {
		switch {
		case o.done && o.write:
			writes++
		case o.done:
			reads++
		}
	}
	return writes, reads
}

// settled returns what is not as it must be a while after all faults have ended.
func (w *world) settled() string {
	state := w.checker.state()
	for _, m := range state.Members {
		machine := w.byID[m.ID]
		switch {
		case m.Leaving:
			return m.Name + " does not leave"
		case !state.Voter(m.ID):
			return m.Name + " has no vote"
		case machine == nil || machine.inc == nil:
			return m.Name + " does not run"
		case len(w.checker.log)-int(machine.inc.files.at.index-w.checker.first.at.index) > 5:
			return fmt.Sprintf("%s is at entry %d of %d", m.Name, machine.inc.files.at.index, len(w.checker.log)+1)
		}
	}
	if len(state.Voters) != len(state.Members) || len(state.Learners) > 0 {
		return fmt.Sprintf("voters %v, learners %v", state.Voters, state.Learners)
	}
	return ""
}
