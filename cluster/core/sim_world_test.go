package core

import (
	"cmp"
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"mayfly/cluster/entry"
)

// The simulation runs a cluster of nodes in one goroutine and in virtual time. Every core is the real one;
// disks, stores, network, clocks and clients are models that fail as a seed says.

// mutation switches one rule of the design off, to show that the simulation notices.
type mutation string

const (
	sound           mutation = ""
	withoutFence    mutation = "a batch is proposed and applied in any session"
	withoutVoid     mutation = "void batches are applied"
	withoutLease    mutation = "reads need no lease"
	withoutPromise  mutation = "voters who have heard a leader elect another one"
	withoutStart    mutation = "nodes vote right after their start"
	withoutEnd      mutation = "a lease goes on after the order to depose the leader"
	withoutReload   mutation = "memory that is ahead of the log stays when another session begins"
	withoutSession  mutation = "a read is confirmed by the lease of a later session"
	withoutDisk     mutation = "a node acknowledges what is not on its disk"
	withoutLeaseEnd mutation = "the clock of a new leader starts at its wall clock"
)

// world is a cluster and its clients at a moment.
type world struct {
	rand   *rand.Rand
	now    time.Duration
	events eventQueue
	count  uint64 // of events, for their order

	machines []*machine
	byID     map[uint64]*machine
	lastID   uint64
	lastLSN  uint64

	blocked map[[2]int]bool // from, to
	drop    float64
	late    time.Duration // MsgTimeoutNow takes so long at most
	quiet   time.Duration // until then no client writes
	pensive time.Duration // until then many reads wait long for their lease
	spared  *machine      // no client writes to it meanwhile

	checker *checker
	mutant  mutation
	healing bool
	failure string

	hash    uint64 // of the trace
	verbose func(string)
}

type event struct {
	at    time.Duration
	count uint64
	run   func()
}

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].at, q[j].at), cmp.Compare(q[i].count, q[j].count)) < 0
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return last
}

// after runs a function later.
func (w *world) after(d time.Duration, run func()) {
	w.count++
	heap.Push(&w.events, event{w.now + d, w.count, run})
}

// run goes on until a time, or until a check fails.
func (w *world) run(until time.Duration) {
	for len(w.events) > 0 && w.events[0].at <= until && w.failure == "" {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.run()
	}
	w.now = max(w.now, until)
}

// between returns a random duration.
func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.rand.Int64N(int64(most-least)+1))
}

func (w *world) chance(p float64) bool { return w.rand.Float64() < p }

// note adds an event to the trace.
func (w *world) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	for _, c := range []byte(text) {
		w.hash = (w.hash ^ uint64(c)) * 1099511628211
	}
	w.hash = (w.hash ^ uint64(w.now)) * 1099511628211
	if w.verbose != nil {
		w.verbose(fmt.Sprintf("%9.3f %s", w.now.Seconds(), text))
	}
}

func (w *world) fail(format string, args ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf("at %.3f s: ", w.now.Seconds()) + fmt.Sprintf(format, args...)
		w.note("FAIL %s", w.failure)
	}
}

func newWorld(seed uint64, mutant mutation) *world {
	w := &world{
		rand:    rand.New(rand.NewPCG(seed, 1)),
		byID:    map[uint64]*machine{},
		blocked: map[[2]int]bool{},
		checker: &checker{},
		mutant:  mutant,
	}
	w.checker.w = w
	nodes := 3
	if w.chance(0.3) {
		nodes = 1 + w.rand.IntN(5)
	}
	var members []entry.Member
	for range nodes {
		m := w.newMachine()
		m.begins(place{1, 1}, nil)
		members = append(members, m.member())
	}
	state := entry.FirstState(members).Encode()
	for _, m := range w.machines {
		m.disk.files[0].state = state
		m.fresh = true
		m.boot()
	}
	w.checker.start(w.machines[0].disk.files[0])
	for i := range clients {
		w.after(w.between(0, 100*time.Millisecond), func() { w.client(i) })
	}
	return w
}

// newMachine returns a machine that does not run yet, with an empty disk.
func (w *world) newMachine() *machine {
	m := &machine{w: w, number: len(w.machines), rate: 1 + 0.095*w.rand.Float64()}
	if w.chance(0.5) { // the fastest and the slowest clock
		m.rate = 1 + 0.095*float64(w.rand.IntN(2))
	}
	m.step = w.between(0, time.Hour)
	w.machines = append(w.machines, m)
	m.wipe()
	return m
}

// newID gives a machine a raft id that was never in use.
func (w *world) newID(m *machine) {
	delete(w.byID, m.id)
	w.lastID++
	m.id = w.lastID
	w.byID[m.id] = m
}

// send takes a message of a node to another one, later, twice or never.
func (w *world) send(from *incarnation, m *raftpb.Message) {
	to := w.byID[m.GetTo()]
	if to == nil || to == from.machine {
		return
	}
	stores := from.stores(m)
	copies := 1
	if w.chance(0.01) {
		copies = 2
	}
	for range copies {
		if w.blocked[[2]int{from.machine.number, to.number}] || w.chance(w.drop) {
			if w.chance(0.2) {
				from.machine.after(w.between(0, 20*time.Millisecond), func() { from.do(func() { from.core.ReportUnreachable(m.GetTo()) }) })
			}
			if stores != nil {
				from.reportStores(m.GetTo(), false)
			}
			continue
		}
		delay := w.between(100*time.Microsecond, 3*time.Millisecond)
		switch {
		case m.GetType() == raftpb.MsgTimeoutNow && w.late > 0:
			delay = w.between(0, w.late)
		case stores != nil:
			delay = w.between(time.Millisecond, 400*time.Millisecond)
		case w.chance(0.02):
			delay = w.between(0, 300*time.Millisecond)
		}
		w.after(delay, func() {
			arrived := to.inc != nil && to.id == m.GetTo() && !w.blocked[[2]int{from.machine.number, to.number}]
			if stores != nil {
				from.reportStores(m.GetTo(), arrived)
			}
			if arrived {
				to.inc.receive(m, stores)
			}
		})
	}
}

// leading returns the machines that take clients' commands, in order.
func (w *world) leading() (leading []*machine) {
	for _, m := range w.machines {
		if m.inc != nil && m.inc.leads {
			leading = append(leading, m)
		}
	}
	return leading
}

// leader returns one of them at random, nil if there is none.
func (w *world) leader() *machine {
	leading := w.leading()
	if len(leading) == 0 {
		return nil
	}
	return leading[w.rand.IntN(len(leading))]
}

// members returns the machines that are members now, as of the last entry that any node has applied.
func (w *world) members() (members []*machine) {
	state := w.checker.state()
	for _, m := range w.machines {
		if state.WithID(m.id) != nil {
			members = append(members, m)
		}
	}
	return members
}

// other returns a member that is not m.
func (w *world) other(m *machine) *machine {
	members := slices.DeleteFunc(w.members(), func(other *machine) bool { return other == m })
	if len(members) == 0 {
		return m
	}
	return members[w.rand.IntN(len(members))]
}

// cutOff separates a machine from others: what it sends, what it gets, or both.
func (w *world) cutOff(m *machine, out, in bool, others ...*machine) {
	if others == nil {
		others = w.machines
	}
	for _, other := range others {
		if other != m {
			w.blocked[[2]int{m.number, other.number}] = w.blocked[[2]int{m.number, other.number}] || out
			w.blocked[[2]int{other.number, m.number}] = w.blocked[[2]int{other.number, m.number}] || in
		}
	}
}

// A fault breaks something. The one after it comes a while later.
type fault struct {
	weight int
	name   string
	run    func(w *world, m *machine)
}

var faults = []fault{
	{8, "kill", func(w *world, m *machine) { m.kill(false); m.bootAfter(w.between(0, 3*time.Second)) }},
	{6, "restart", func(w *world, m *machine) { m.kill(false); m.bootAfter(w.between(0, 50*time.Millisecond)) }},
	{6, "power cut", func(w *world, m *machine) { m.kill(true); m.bootAfter(w.between(0, 3*time.Second)) }},
	{2, "power cut of all", func(w *world, _ *machine) {
		for _, m := range w.machines {
			m.kill(true)
			m.bootAfter(w.between(0, time.Second))
		}
	}},
	{6, "isolate", func(w *world, m *machine) { w.cutOff(m, true, true) }},
	{4, "mute", func(w *world, m *machine) { w.cutOff(m, true, false) }},
	{4, "deafen", func(w *world, m *machine) { w.cutOff(m, false, true) }},
	{6, "separate two", func(w *world, m *machine) { w.cutOff(m, true, true, w.other(m)) }},
	{2, "one way", func(w *world, m *machine) { w.cutOff(m, true, false, w.other(m)) }},
	{14, "heal", func(w *world, _ *machine) { clear(w.blocked); w.drop = 0; w.late = 0 }},
	{6, "pause", func(w *world, m *machine) {
		m.pause(w.between(50*time.Millisecond, []time.Duration{500 * time.Millisecond, 5 * time.Second}[w.rand.IntN(2)]))
	}},
	{4, "step the wall clock", func(w *world, m *machine) { m.step += w.between(-time.Hour, time.Hour) }},
	{4, "slow disk", func(w *world, m *machine) {
		m.slow = w.between(20*time.Millisecond, []time.Duration{time.Second, 6 * time.Second}[w.rand.IntN(2)])
		w.after(w.between(time.Second, 4*time.Second), func() { m.slow = 0 })
	}},
	{4, "full disk", func(w *world, m *machine) {
		m.full = true
		w.after(w.between(time.Second, 4*time.Second), func() { m.full = false })
	}},
	{3, "lossy network", func(w *world, _ *machine) { w.drop = 0.3 * w.rand.Float64() }},
	{8, "transfer", func(w *world, m *machine) { w.transfer(m) }},
	{6, "transfer with a late order", func(w *world, m *machine) { w.late = 4 * time.Second; w.transfer(m) }},
	{4, "late batch", func(w *world, _ *machine) { w.lateBatch() }},
	{5, "lose a disk", func(w *world, m *machine) { w.loseDisk(m) }},
	{3, "add", func(w *world, _ *machine) { w.add() }},
	{4, "remove", func(w *world, m *machine) { w.remove(m) }},
	{10, "depose within the lease", func(w *world, _ *machine) { w.deposeWithinLease() }},
	{6, "lead again", func(w *world, _ *machine) { w.leadAgain() }},
}

// breakSomething is the nemesis.
func (w *world) breakSomething() {
	total := 0
	for _, f := range faults {
		total += f.weight
	}
	n := w.rand.IntN(total)
	for _, f := range faults {
		if n -= f.weight; n >= 0 {
			continue
		}
		m := w.machines[w.rand.IntN(len(w.machines))]
		if leader := w.leader(); leader != nil && w.chance(0.5) {
			m = leader
		}
		w.note("%s: %s", f.name, m.name())
		f.run(w, m)
		return
	}
}

func (w *world) transfer(to *machine) {
	if m := w.leader(); m != nil {
		id := to.id
		if to == m {
			id = 0
		}
		m.inc.do(func() { _ = m.inc.core.Transfer(id, m.local()) })
	}
}

// lateBatch gets a batch of an earlier session into the log, past the check of Propose.
func (w *world) lateBatch() {
	m := w.leader()
	if m == nil {
		return
	}
	m.inc.do(func() {
		c := m.inc.core
		if c.Session() > 1 && c.leads.transfer == 0 {
			w.lastLSN++
			late := encodeBatch(nil, m.inc.clock, []*write{{key: w.rand.IntN(keys), value: w.checker.newValue(), now: m.inc.clock}})
			_ = c.raft.Propose(entry.AppendBatch(nil, c.Session()-1, w.lastLSN, m.inc.clock, late))
		}
	})
}

// loseDisk wipes a machine if a majority of voters keep their disks, and the members do not change just now.
func (w *world) loseDisk(m *machine) {
	state := w.checker.state()
	intact := 0
	for _, id := range state.Voters {
		if w.byID[id] != nil {
			intact++
		}
	}
	for _, member := range state.Members {
		if !state.Voter(member.ID) || member.Leaving {
			return
		}
	}
	for _, other := range w.machines {
		if other.inc != nil && other.inc.core.leads.confPending {
			return
		}
	}
	// The others elect by the voters that they know. Those of the last change may be known to m alone.
	for _, id := range state.Voters {
		if other := w.byID[id]; other != nil && other != m && (other.inc == nil || !slices.Equal(other.inc.core.state.Voters, state.Voters)) {
			return
		}
	}
	if !state.Voter(m.id) || intact != len(state.Voters) || intact < 3 || len(state.Learners) > 0 {
		return
	}
	m.kill(true)
	m.wipe()
	m.bootAfter(w.between(0, time.Second))
	w.join(m)
}

// join asks leaders to take a machine until one of them has.
func (w *world) join(m *machine) {
	id := m.id
	var ask func()
	ask = func() {
		state := w.checker.state()
		if m.id != id || state.WithID(id) != nil || m.gone {
			return
		}
		if leader := w.leader(); leader != nil && m.inc != nil {
			leader.inc.do(func() { _ = leader.inc.core.ProposeMember(entry.Join, m.member()) })
		}
		w.after(w.between(200*time.Millisecond, 500*time.Millisecond), ask)
	}
	w.after(w.between(0, 500*time.Millisecond), ask)
}

// add announces a machine and starts it.
func (w *world) add() {
	leader := w.leader()
	if leader == nil || len(w.members()) >= 5 {
		return
	}
	var m *machine
	for _, other := range w.machines {
		if other.gone {
			m = other
		}
	}
	if m == nil && len(w.machines) >= 5 {
		return
	}
	if m == nil {
		m = w.newMachine()
	} else {
		m.wipe()
	}
	m.gone = false
	m.boot()
	w.announce(m)
	w.join(m)
}

func (w *world) announce(m *machine) {
	state := w.checker.state()
	if m.gone || state.Named(m.name()) != nil && !state.Named(m.name()).Leaving {
		return
	}
	if leader := w.leader(); leader != nil {
		leader.inc.do(func() {
			_ = leader.inc.core.ProposeMember(entry.Announce, entry.Member{Name: m.name(), Addr: m.addr()})
		})
	}
	w.after(w.between(time.Second, 2*time.Second), func() { w.announce(m) })
}

// remove lets a member leave if three remain.
func (w *world) remove(m *machine) {
	state := w.checker.state()
	member := state.WithID(m.id)
	if leader := w.leader(); leader != nil && member != nil && len(state.Voters) > 3 && len(state.Members) > 3 {
		leader.inc.do(func() {
			if leader.inc.core.ProposeMember(entry.Leave, *member) == nil {
				m.leaves = true
			}
		})
	}
}

// deposeWithinLease separates a leader and a follower, lets the follower wait for its election, and then
// separates the voter that both need, which may restart. All is quiet, so that the follower's log stays good
// enough.
func (w *world) deposeWithinLease() {
	leader := w.leader()
	if leader == nil || len(w.members()) != 3 {
		return
	}
	candidate := w.other(leader)
	w.quiet = w.now + 3500*time.Millisecond
	w.after(100*time.Millisecond, func() {
		if !w.healing {
			w.cutOff(leader, true, true, candidate)
		}
	})
	w.after(w.between(800*time.Millisecond, 2*time.Second), func() {
		for _, voter := range w.members() {
			if voter == leader || voter == candidate || w.healing {
				continue
			}
			w.cutOff(leader, true, true, voter)
			if w.chance(0.5) {
				voter.kill(false)
				voter.bootAfter(0)
			}
		}
	})
}

// leadAgain separates or stops a leader until another one leads, and makes it the leader again soon.
func (w *world) leadAgain() {
	leader := w.leader()
	if leader == nil {
		return
	}
	w.pensive, w.spared = w.now+5*time.Second, leader
	d := w.between(1200*time.Millisecond, 2500*time.Millisecond)
	w.after(100*time.Millisecond, func() {
		switch {
		case w.healing:
		case w.chance(0.3):
			w.cutOff(leader, true, true)
		case w.chance(0.3):
			leader.pause(d)
		default: // it has handed over, but does not hear of that for a while
			w.transfer(w.other(leader))
			w.after(w.between(0, 5*time.Millisecond), func() { w.cutOff(leader, false, true) })
		}
	})
	if w.chance(0.5) {
		d = w.between(200*time.Millisecond, 700*time.Millisecond)
	}
	w.after(d, func() {
		clear(w.blocked)
		for n := range 10 {
			w.after(time.Duration(n)*80*time.Millisecond, func() { w.transfer(leader) })
		}
	})
}

// heal ends all faults and starts all machines.
func (w *world) heal() {
	w.note("heal all")
	w.healing = true
	clear(w.blocked)
	w.drop, w.late, w.quiet, w.pensive = 0, 0, 0, 0
	for _, m := range w.machines {
		m.slow, m.full = 0, false
		if m.inc == nil {
			m.bootAfter(0)
		}
	}
}
