package core

import (
	"encoding/binary"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"mayfly/cluster/entry"
)

// incarnation is the driver and a keyspace: memory that a leader changes before the batch is committed, files
// that have what is committed.
type incarnation struct {
	machine *machine
	w       *world
	core    *Core
	memory  *raft.MemoryStorage
	dead    bool
	began   time.Duration
	start   time.Duration // no vote before, because of what an earlier incarnation may have promised

	inbox    []func() // what the goroutine of the core does next
	draining bool
	saves    []*Save       // that wait for the disk; the first one is being written
	ticks    int           // 0 or 1 that wait
	ticked   int           // all ticks
	lease    time.Duration // published
	reads    map[uint64]*incarnationRead
	lastRead uint64
	incoming map[uint64]*version // stores that have arrived, by their index

	queue    []entry.Entry
	applying bool

	files   version
	regs    [keys]cell
	session uint64 // in which memory changes are made
	leads   bool
	leading uint64 // Lead is called soon with this session
	ending  uint64 // Follow is called soon because this session has ended
	begun   uint64 // the last session whose begin was applied
	clock   int64
	moment  int64         // every transaction before is in the buffer or was detached
	flight  *flight       // proposed, or to be proposed again
	next    *flight       // what memory has besides
	tended  time.Duration // when a batch was detached last
}

type cell struct {
	value uint64
	in    *flight // not committed, nil: it is
}

// write is a client's change of a key.
type write struct {
	key         int
	value, prev uint64
	now         int64
	op          *op
}

// flight is a batch on its way.
type flight struct {
	lsn     uint64
	session uint64 // in which it was proposed, 0: it was not
	moment  int64
	promise int64
	writes  []*write
	done    bool
	waiting []func()
}

type incarnationRead struct {
	op      *op
	value   uint64
	now     int64
	session uint64
}

func newIncarnation(m *machine, files version) *incarnation {
	i := &incarnation{
		machine: m, w: m.w, began: m.w.now, memory: m.memory(), files: files,
		reads: map[uint64]*incarnationRead{}, incoming: map[uint64]*version{},
	}
	for k, v := range files.regs {
		i.regs[k] = cell{value: v}
	}
	m.inc = i
	var err error
	i.core, err = New(Config{
		ID: m.id, Storage: i.memory, Applied: files.at.index, State: files.state, Self: m.member(), Now: m.local(), Fresh: m.fresh,
		MaxMessage: 400, MaxInflight: 4, MaxUnapplied: 20_000,
	})
	if err != nil {
		m.w.fail("%s: %v", m.name(), err)
		return i
	}
	m.fresh = false
	if m.w.mutant == withoutStart {
		i.core.promise = 0
	}
	i.start = i.core.promise
	i.tick()
	i.sync()
	i.do(func() {})
	return i
}

// end is what a kill does to memory. Clients wait for their timeout.
func (i *incarnation) end() {
	i.dead = true
	i.machine.inc = nil
}

// reload ends the incarnation and starts another one.
func (i *incarnation) reload() {
	i.w.note("%s loads again", i.machine.name())
	m := i.machine
	m.kill(false)
	m.bootAfter(i.w.between(0, 30*time.Millisecond))
}

func (i *incarnation) tick() {
	m := i.machine
	i.ticked++
	due := time.Duration(float64(i.ticked)*float64(tick)/m.rate) + i.began
	if i.w.chance(0.2) { // late, the next one is not
		due += i.w.between(0, tick*9/10)
	}
	i.w.after(max(due-i.w.now, 0), func() {
		if i.dead {
			return
		}
		i.tick()
		if i.ticks == 0 { // a ticker drops those that are not taken
			i.ticks = 1
			i.do(func() {
				i.ticks = 0
				if i.w.mutant == withoutPromise {
					i.core.promise = i.start
				}
				i.core.Tick(m.local())
				i.passOn()
			})
		}
		if i.leads && i.w.now >= m.paused {
			i.moment = max(i.moment, i.now())
			switch {
			case i.flight != nil && i.flight.session != i.session:
				i.propose() // a transfer was under way
			case i.w.now-i.tended > time.Second && i.w.now >= i.w.quiet:
				i.detach(true)
			}
		}
	})
}

// passOn makes a node with room the leader if this one's disk is full, also if it has no open session.
func (i *incarnation) passOn() {
	if !i.machine.full || i.core.role != Leader {
		return
	}
	for _, m := range i.w.members() {
		if m.inc != nil && !m.full && m != i.machine && i.core.active(m.id) && i.core.state.Voter(m.id) {
			i.w.note("%s passes the lead on to %s", i.machine.name(), m.name())
			_ = i.core.Depose(m.id, i.machine.local())
			return
		}
	}
}

// sync forces the files to disk each second, and cuts the log.
func (i *incarnation) sync() {
	i.machine.after(i.w.between(500*time.Millisecond, 1500*time.Millisecond), func() {
		i.sync()
		d := &i.machine.disk
		d.files = slices.Clone(d.files[len(d.files)-1:])
		durable := d.files[0].at
		i.do(func() {
			last, _ := i.memory.LastIndex()
			first, _ := i.memory.FirstIndex()
			index := min(durable.index, last-min(last, 40))
			if index < first+10 {
				return
			}
			term, err := i.memory.Term(index)
			if err != nil {
				i.w.fail("%s: %v", i.machine.name(), err)
				return
			}
			d.written = append(d.written, record{mark: place{index, term}})
			if err := i.memory.Compact(index); err != nil {
				i.w.fail("%s: %v", i.machine.name(), err)
			}
		})
	})
}

// do lets the goroutine of the core do something.
func (i *incarnation) do(f func()) {
	i.inbox = append(i.inbox, f)
	i.drain()
}

func (i *incarnation) drain() {
	if i.draining {
		return
	}
	i.draining = true
	for !i.dead && i.w.now >= i.machine.paused && len(i.inbox) > 0 && i.w.failure == "" {
		f := i.inbox[0]
		i.inbox = i.inbox[1:]
		f()
		i.pump()
	}
	i.draining = false
}

// pump does what is ready.
func (i *incarnation) pump() {
	for !i.dead {
		i.observe()
		r, ok, err := i.core.Ready()
		if err != nil {
			i.w.fail("%s: %v", i.machine.name(), err)
			return
		}
		if !ok {
			return
		}
		i.observe()
		i.publish()
		for _, m := range r.Send {
			i.w.send(i, m)
		}
		if s := r.Save; s != nil {
			if i.w.mutant == withoutDisk {
				i.acknowledge(&Save{After: s.After})
				s.After = nil
			}
			i.saves = append(i.saves, s)
			if len(i.saves) == 1 {
				i.save()
			}
		}
		i.queue = append(i.queue, r.Apply...)
		for _, b := range r.Barriers {
			read := i.reads[b]
			delete(i.reads, b)
			i.reply(read)
		}
		for _, b := range r.Lost {
			delete(i.reads, b)
		}
		i.apply()
	}
}

// save writes what waits, in a goroutine of its own.
func (i *incarnation) save() {
	if n := len(i.saves); n > 1 && i.w.chance(0.7) {
		for n > 1 && i.saves[0].Join(i.saves[1]) {
			i.saves = slices.Delete(i.saves, 1, 2)
			n--
		}
	}
	s, d := i.saves[0], &i.machine.disk
	if snap := s.Snapshot; snap != nil {
		meta := snap.GetMetadata()
		d.incoming = i.incoming[meta.GetIndex()]
		if d.incoming == nil {
			i.w.fail("%s: no stores for entry %d", i.machine.name(), meta.GetIndex())
			return
		}
		d.saving = append(d.saving, record{mark: place{meta.GetIndex(), meta.GetTerm()}, reset: true})
	}
	for _, e := range s.Entries {
		d.saving = append(d.saving, record{entry: e})
	}
	if s.HardState != nil {
		d.saving = append(d.saving, record{hard: s.HardState})
	}
	delay := time.Duration(0)
	if s.MustSync {
		delay = i.w.between(50*time.Microsecond, 2*time.Millisecond)
		if i.machine.slow > 0 {
			delay = i.w.between(0, i.machine.slow)
		}
	}
	i.machine.after(delay, func() {
		i.saved(s)
		if i.saves = i.saves[1:]; !i.dead && len(i.saves) > 0 {
			i.save()
		}
	})
}

// saved goes on after the log was written.
func (i *incarnation) saved(s *Save) {
	d := &i.machine.disk
	d.written = append(d.written, d.saving...)
	d.saving = nil
	if s.MustSync {
		for _, w := range d.written {
			d.log.write(w)
		}
		d.written = nil
	}
	if s.Snapshot != nil {
		i.reload()
		return
	}
	if s.HardState != nil {
		_ = i.memory.SetHardState(s.HardState)
	}
	_ = i.memory.Append(s.Entries)
	i.acknowledge(s)
}

// acknowledge tells everyone that a Save is on disk.
func (i *incarnation) acknowledge(s *Save) {
	for _, m := range s.After {
		i.w.send(i, m)
	}
	own := *s
	i.machine.after(i.w.between(0, 100*time.Microsecond), func() { i.do(func() { i.core.Saved(&own) }) })
}

// publish makes the lease known to the clients' goroutines.
func (i *incarnation) publish() {
	i.lease = i.core.LeaseUntil()
	if i.w.mutant == withoutEnd && i.core.leads.deposed && i.core.Session() != 0 {
		i.lease = i.core.now + i.core.leaseTime()
	}
	if i.lease > i.machine.local() {
		i.w.checker.leased(i)
	}
}

// observe notices that a session was opened or has ended here. Lead and Follow take a while, during which
// clients' commands go on.
func (i *incarnation) observe() {
	i.publish()
	session := i.core.Session()
	if session != 0 && session != i.session && session != i.leading {
		i.leading = session
		i.w.checker.opens(i, session)
		i.machine.after(i.w.between(0, 5*time.Millisecond), func() { i.lead(session) })
	}
	if i.leads && session != i.session && i.ending != i.session {
		i.ending = i.session
		i.machine.after(i.w.between(0, 5*time.Millisecond), func() {
			if i.session == i.ending {
				i.leads = false
			}
		})
	}
}

// lead begins to take commands.
func (i *incarnation) lead(session uint64) {
	if i.begun != session { // another one has begun since
		return
	}
	i.w.note("%s leads session %d", i.machine.name(), session)
	i.session, i.leads, i.ending = session, true, 0
	if i.w.mutant != withoutLeaseEnd {
		i.clock = max(i.clock, i.files.promise)
	} else {
		i.clock = i.machine.wall()
	}
	i.moment = max(i.moment, i.clock)
	if i.flight != nil {
		i.propose()
	}
	i.detach(true)
}

// now is the leader's clock: its wall clock, but never back, and never beyond what the log has leased.
func (i *incarnation) now() int64 {
	now := max(i.clock, i.machine.wall())
	if i.w.mutant != withoutLeaseEnd {
		now = min(now, max(i.clock, i.files.promise))
	}
	i.clock = now
	return i.clock
}

// unsettled reports whether memory has what is not committed.
func (i *incarnation) unsettled() bool { return i.flight != nil || i.next != nil }

// detach proposes what was changed, if no batch is in flight. A clock record is a batch without writes.
func (i *incarnation) detach(clockRecord bool) {
	if i.flight != nil || !i.leads || i.next == nil && !clockRecord {
		return
	}
	if i.next == nil {
		i.next = &flight{}
	}
	i.w.lastLSN++
	i.tended = i.w.now
	i.flight, i.next = i.next, nil
	i.flight.lsn, i.flight.moment, i.flight.promise = i.w.lastLSN, i.moment, i.now()+2000
	i.propose()
}

// propose gives the batch in flight to the core, in the session in which its memory was changed last.
func (i *incarnation) propose() {
	f, session := i.flight, i.session
	i.machine.after(i.w.between(0, time.Millisecond), func() {
		i.do(func() {
			if i.flight != f || f.session == session {
				return
			}
			batch := entry.AppendBatch(nil, session, f.lsn, f.moment, encodeBatch(nil, f.promise, f.writes))
			if i.w.mutant == withoutFence {
				if i.core.role == Leader && i.core.raft.Propose(batch) == nil {
					f.session = session
				}
				return
			}
			if i.core.Propose(session, batch) == nil {
				f.session = session
			}
		})
	})
}

func encodeBatch(dst []byte, promise int64, writes []*write) []byte {
	dst = binary.AppendVarint(dst, promise)
	for _, w := range writes {
		dst = append(dst, byte(w.key))
		dst = binary.AppendUvarint(dst, w.value)
		dst = binary.AppendUvarint(dst, w.prev)
		dst = binary.AppendVarint(dst, w.now)
	}
	return dst
}

func decodeBatch(b []byte) (promise int64, writes []write) {
	promise, n := binary.Varint(b)
	b = b[n:]
	for len(b) > 0 {
		w := write{key: int(b[0])}
		b = b[1:]
		w.value, n = binary.Uvarint(b)
		b = b[n:]
		w.prev, n = binary.Uvarint(b)
		b = b[n:]
		w.now, n = binary.Varint(b)
		b = b[n:]
		writes = append(writes, w)
	}
	return promise, writes
}

// apply lets the applier go on.
func (i *incarnation) apply() {
	if i.applying || len(i.queue) == 0 {
		return
	}
	i.applying = true
	i.machine.after(i.w.between(0, time.Millisecond), i.applyNext)
}

func (i *incarnation) applyNext() {
	if i.machine.full {
		i.machine.after(100*time.Millisecond, i.applyNext)
		return
	}
	e := i.queue[0]
	i.queue = i.queue[1:]
	if !i.applyEntry(&e) {
		return // the incarnation is over
	}
	i.applying = false
	i.do(func() { i.core.Applied(e.Index) })
	i.apply()
}

func (i *incarnation) applyEntry(e *entry.Entry) bool {
	f := i.flight
	own := e.Kind == entry.Batch && f != nil && f.session == e.Session && f.lsn == e.LSN
	void := e.Void
	if i.w.mutant == withoutFence || i.w.mutant == withoutVoid {
		void = false
	}
	v := i.files
	v.at = place{e.Index, e.Term}
	if e.State != nil {
		v.state = e.State
	}
	switch {
	case e.Kind == entry.Begin:
		i.begun = e.Session
		i.leads = i.leads && e.Session == i.session // Follow, before memory is judged
		if i.unsettled() && e.Member.ID != i.machine.id && i.w.mutant != withoutReload {
			i.reload()
			return false
		}
	case e.Kind == entry.Batch && !void:
		promise, writes := decodeBatch(e.Batch)
		v.moment, v.promise = e.Moment, promise
		for _, w := range writes {
			v.regs[w.key] = w.value
			if !own {
				i.regs[w.key] = cell{value: w.value}
			}
		}
	case own:
		i.w.fail("%s: its own batch of session %d is void", i.machine.name(), e.Session)
	}
	i.files = v
	d := &i.machine.disk
	d.files = append(d.files, v)
	i.w.checker.applied(i, e, v)
	if own {
		i.committed(f)
	} else if e.Kind == entry.Batch && !void && i.unsettled() && i.w.mutant != withoutReload {
		i.w.fail("%s: a batch of session %d, memory is ahead in session %d", i.machine.name(), e.Session, i.session)
	}
	return true
}

// committed ends the flight.
func (i *incarnation) committed(f *flight) {
	f.done = true
	i.flight = nil
	for _, w := range f.writes {
		i.respond(w.op, w.value, w.now)
	}
	for _, run := range f.waiting {
		run()
	}
	i.detach(false)
}

// respond tells a client.
func (i *incarnation) respond(o *op, value uint64, now int64) {
	i.w.after(i.w.between(0, 2*time.Millisecond), func() { i.w.checker.ends(o, value, now) })
}

// execute takes a client's command.
func (i *incarnation) execute(o *op) {
	switch {
	case !i.leads:
		i.w.after(0, func() { i.w.checker.refused(o) })
	case o.write:
		if i.next == nil {
			i.next = &flight{}
		}
		i.next.writes = append(i.next.writes, &write{key: o.key, value: o.value, prev: i.regs[o.key].value, now: i.now(), op: o})
		i.regs[o.key] = cell{o.value, i.next}
		i.machine.after(i.w.between(0, time.Millisecond), func() { i.detach(false) })
	default:
		c := i.regs[o.key]
		read := &incarnationRead{o, c.value, i.now(), i.session}
		if c.in != nil && !c.in.done {
			c.in.waiting = append(c.in.waiting, func() { i.confirm(read) })
		} else {
			i.confirm(read)
		}
	}
}

// confirm asks whether this node leads, after the read was made.
func (i *incarnation) confirm(read *incarnationRead) {
	delay := i.w.between(0, 2*time.Millisecond)
	if i.w.chance(0.03) || i.w.now < i.w.pensive && i.w.chance(0.5) {
		delay = i.w.between(0, 2*time.Second)
	}
	i.machine.after(delay, func() {
		switch {
		case i.w.mutant == withoutLease:
			i.reply(read)
		case i.session != read.session && i.w.mutant != withoutSession:
		case i.lease > i.machine.local():
			i.reply(read)
		default:
			i.do(func() {
				i.lastRead++
				if i.core.Session() != read.session && i.w.mutant != withoutSession {
					return
				}
				if i.core.ReadBarrier(i.lastRead, i.machine.local()) == nil {
					i.reads[i.lastRead] = read
				}
			})
		}
	})
}

func (i *incarnation) reply(read *incarnationRead) { i.respond(read.op, read.value, read.now) }

// receive takes a message of another node, with stores if it has any.
func (i *incarnation) receive(m *raftpb.Message, stores *version) {
	i.do(func() {
		if stores != nil {
			i.incoming[stores.at.index] = stores
		}
		if i.w.mutant == withoutPromise {
			i.core.promise = i.start
		}
		_ = i.core.Step(m, i.machine.local())
	})
}

// stores puts the files of this node into a message that offers them.
func (i *incarnation) stores(m *raftpb.Message) *version {
	if m.GetType() != raftpb.MsgSnap {
		return nil
	}
	v := i.files
	state, err := entry.DecodeState(v.state)
	if err != nil {
		i.w.fail("%s: %v", i.machine.name(), err)
	}
	m.Snapshot = &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{
		Index: &v.at.index, Term: &v.at.term,
		ConfState: &raftpb.ConfState{Voters: state.Voters, Learners: state.Learners},
	}}
	return &v
}

func (i *incarnation) reportStores(to uint64, ok bool) {
	i.machine.after(0, func() { i.do(func() { i.core.ReportSnapshot(to, ok) }) })
}
