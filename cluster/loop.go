package cluster

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/cluster/core"
	"mayfly/cluster/disk"
	"mayfly/cluster/entry"
	"mayfly/expiry/clock"

	"github.com/rs/zerolog"
	"go.etcd.io/raft/v3/raftpb"
)

// inboxSize is how many messages of other nodes wait for the loop. Beyond them the senders wait.
const inboxSize = 1024

// mostSteps is how many messages the loop takes before it saves and sends what follows from them.
const mostSteps = 256

// compactEvery is the number of ticks between two looks at how much of the raft log can go.
const compactEvery = 10

// errInstall ends an incarnation that has received the stores of another node.
var errInstall = errors.New("the stores of another node have arrived")

// loop is the goroutine that owns raft's core in one incarnation. It waits for nothing: not for its log on
// disk, nor the keyspace, nor the network.
type loop struct {
	core    *core.Core
	disk    *disk.Log
	saver   *saver
	applier *applier
	rep     *replicator
	durable func() uint64 // index up to which the log may be cut
	send    func([]*raftpb.Message)
	stores  func(*raftpb.Message) bool // begins to send the stores to a node that is too far behind
	fail    func(error)                // ends the incarnation
	changed func()                     // called after each new status
	tick    time.Duration
	founder bool // this is the first incarnation of the founder of the cluster
	log     zerolog.Logger

	inbox chan *raftpb.Message
	woken chan struct{} // has room for one; the applier has got further, or calls has grown
	stop  chan struct{} // closed when the incarnation ends

	mu    sync.Mutex // protects calls
	calls []func()   // to be called by the loop

	status atomic.Pointer[core.Status]
	bytes  atomic.Int64 // of the raft log in memory

	// For the loop's goroutine only.
	session  uint64 // that was published last
	leading  leading
	barrier  uint64 // to ask a majority for, still; 0: none
	ticks    int
	retained retention
}

// leading is what the last status says of the leader.
type leading struct {
	role         core.Role
	term, leader uint64
}

func (l *loop) init() {
	l.inbox = make(chan *raftpb.Message, inboxSize)
	l.woken = make(chan struct{}, 1)
	l.saver.arrived = make(chan struct{}, 1)
	l.saver.stop, l.saver.fail = l.stop, l.fail
	l.saver.send = func(messages []*raftpb.Message) { l.send(messages) } // that has no stores
	l.saver.saved = func(s *core.Save) { l.post(func() { l.core.Saved(s) }) }
	l.rep.propose = func(session, lsn uint64, batch *proposal) {
		l.post(func() { l.proposeBatch(session, lsn, batch) })
	}
	l.rep.barrier = func(number uint64) {
		l.post(func() {
			l.barrier = number
			l.askBarrier()
		})
	}
}

// run serves until the incarnation ends. Errors end it.
func (l *loop) run() {
	ticker := time.NewTicker(l.tick)
	defer ticker.Stop()
	if l.founder {
		l.core.Campaign()
	}
	l.refresh()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
			l.onTick()
		case m := <-l.inbox:
			l.step(m)
		case <-l.woken:
		}
		l.drain()
		if err := l.work(); err != nil {
			l.fail(err)
			return
		}
	}
}

// drain takes what else waits, so that one answer serves all of it.
func (l *loop) drain() {
	l.mu.Lock()
	calls := l.calls
	l.calls = nil
	l.mu.Unlock()
	for _, call := range calls {
		call()
	}
	for range mostSteps {
		select {
		case m := <-l.inbox:
			l.step(m)
		default:
			return
		}
	}
}

func (l *loop) step(m *raftpb.Message) {
	if err := l.core.Step(m, clock.Monotonic()); err != nil {
		l.log.Debug().Err(err).Uint64("from", m.GetFrom()).Stringer("type", m.GetType()).Msg("a message of another node was not taken")
	}
}

func (l *loop) onTick() {
	l.core.Tick(clock.Monotonic())
	if l.barrier != 0 {
		l.askBarrier()
	}
	if l.ticks++; l.ticks%compactEvery == 0 {
		l.compact()
	}
	l.refresh()
}

// work does what the core has to do, until nothing is left.
func (l *loop) work() error {
	l.core.Applied(l.applier.applied.Load())
	for {
		l.publish()
		r, ok, err := l.core.Ready()
		if err != nil {
			return err
		}
		if !ok {
			if role, term, id := l.core.Leading(); l.leading != (leading{role, term, id}) {
				l.refresh()
			}
			return nil
		}
		l.dispatch(r.Send)
		if r.Save != nil {
			l.saver.push(savings{save: r.Save})
		}
		if len(r.Apply) > 0 {
			l.applier.push(task{entries: r.Apply})
			if slices.ContainsFunc(r.Apply, func(e entry.Entry) bool { return e.State != nil }) {
				l.leading = leading{} // makes a new status: the members may be others
			}
		}
		for _, number := range r.Barriers {
			l.rep.answered(number)
		}
		for _, number := range r.Lost {
			l.barrier = number
		}
	}
}

// publish tells the replicator and the applier whether this node leads, and until when the lease lasts. It
// precedes what the core sends: a lease that ends is not used any more once others may know that.
func (l *loop) publish() {
	session := l.core.Session()
	if before := l.session; session != before {
		l.session = session
		if before != 0 {
			l.rep.shut()
			l.barrier = 0
		}
		l.refresh() // before the applier shows it
		if before != 0 {
			l.applier.push(task{follow: true})
		}
		if session != 0 {
			l.rep.open(session) // first: the applier does not lead in a session that is not open
			l.applier.push(task{lead: session})
		}
	}
	if session != 0 {
		l.rep.extend(l.core.LeaseUntil())
	}
}

// dispatch sends messages. The stores of the keyspace go another way.
func (l *loop) dispatch(messages []*raftpb.Message) {
	kept := messages[:0:len(messages)]
	for _, m := range messages {
		if m.GetType() == raftpb.MessageType_MsgSnap {
			if index := m.GetSnapshot().GetMetadata().GetIndex(); l.stores(m) {
				l.retained.begin(m.GetTo(), index, clock.Monotonic())
			}
		} else {
			kept = append(kept, m)
		}
	}
	if len(kept) > 0 {
		l.send(kept)
	}
}

func (l *loop) proposeBatch(session, lsn uint64, batch *proposal) {
	err := l.core.Propose(session, batch.data)
	batch.free()
	if err != nil {
		// The session has ended, and the next one of this node proposes the batch again; or a transfer is
		// under way, and if it fails, the next tick does.
		time.AfterFunc(l.tick, func() { l.rep.retract(session, lsn) })
	}
}

// askBarrier asks a majority whether this node leads; again at the next tick if it cannot now.
func (l *loop) askBarrier() {
	if l.core.ReadBarrier(l.barrier, clock.Monotonic()) == nil {
		l.barrier = 0
	}
}

func (l *loop) compact() {
	status := l.core.Status(clock.Monotonic())
	l.retained.update(&status, l.disk.Behind, clock.Monotonic())
	l.disk.Retain(l.retained.need())
	conf := &raftpb.ConfState{Voters: status.State.Voters, Learners: status.State.Learners}
	l.saver.push(savings{durable: l.durable(), conf: conf}) // the effect is seen at the next call
	if first, err := l.disk.Memory().FirstIndex(); err == nil {
		for _, id := range l.retained.missed(first) {
			l.log.Warn().Uint64("to", id).Msg("the log has grown too much while a node gets the stores: it will need others")
		}
	}
	memory, _ := l.disk.Size()
	l.bytes.Store(memory)
}

// refresh makes a new status for others.
func (l *loop) refresh() {
	status := l.core.Status(clock.Monotonic())
	l.status.Store(&status)
	l.leading = leading{status.Role, status.Term, status.Leader}
	l.changed()
}

// wake makes the loop look at what was applied and posted. It never blocks.
func (l *loop) wake() {
	select {
	case l.woken <- struct{}{}:
	default:
	}
}

// post makes the loop call f, unless the incarnation ends. It never blocks.
func (l *loop) post(f func()) {
	l.mu.Lock()
	l.calls = append(l.calls, f)
	l.mu.Unlock()
	l.wake()
}

// call calls f in the loop and returns its error.
func (l *loop) call(f func() error) error {
	result := make(chan error, 1)
	l.post(func() { result <- f() })
	select {
	case err := <-result:
		return err
	case <-l.stop:
		return errInterrupted
	}
}

// deliver passes a message of another node to the loop. It waits while the loop is behind.
func (l *loop) deliver(m *raftpb.Message) error {
	select {
	case l.inbox <- m:
		return nil
	case <-l.stop:
		return errRestarting
	}
}

// The errors of a request to a node that loads: it has not begun, or it may be done or not.
var (
	errRestarting  = errors.New("this node is loading")
	errInterrupted = errors.New("this node is loading: the request may be done or not")
)
