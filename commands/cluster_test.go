package commands

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/cluster/topology"
	"mayfly/commands/admin"
	"mayfly/commands/engine"
	"mayfly/commands/nodes"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/replica"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"
)

// fakeCluster is a cluster whose view the test sets.
type fakeCluster struct {
	view  atomic.Pointer[topology.View]
	calls []string // of the methods that change something
	err   error    // of these methods
	has   int      // nodes for Replicated
	lose  func()   // called by Replicated; nil: the node goes on to lead
	after func()   // called by Remove and Transfer, may be nil
}

func (f *fakeCluster) DialClient(context.Context, uint64, topology.Client) (net.Conn, error) {
	return nil, f.err
}

func (f *fakeCluster) View() *topology.View { return f.view.Load() }

func (f *fakeCluster) Add(_ context.Context, name, addr string) error {
	f.calls = append(f.calls, "add "+name+" "+addr)
	return f.err
}

func (f *fakeCluster) Remove(_ context.Context, name string) error {
	f.calls = append(f.calls, "remove "+name)
	if f.after != nil {
		f.after()
	}
	return f.err
}

func (f *fakeCluster) Transfer(_ context.Context, name string) error {
	f.calls = append(f.calls, "transfer "+name)
	if f.after != nil {
		f.after()
	}
	return f.err
}

func (f *fakeCluster) Replicated(ctx context.Context, n int) int {
	if f.lose != nil {
		f.lose()
		return 0
	}
	if n > f.has {
		<-ctx.Done()
	}
	return f.has
}

// viewOf returns the view of node a of three, as a role. leader is empty if none is known.
func viewOf(role topology.Role, leader string, quorum bool) *topology.View {
	v := &topology.View{
		ClusterID: 1, Name: "mymaster", Role: role, Term: 3, Index: 110, Applied: 107, Commit: 108, Quorum: quorum,
	}
	for i, name := range []string{"a", "b", "c"} {
		v.Members = append(v.Members, topology.Member{
			Name: name, ID: uint64(i + 1), Addr: fmt.Sprintf("127.0.0.1:%d", 7001+i), Client: fmt.Sprintf("127.0.0.1:%d", 6379+i),
			Voter: true, Self: i == 0, Active: true, Match: 100, LastContact: 1500 * time.Millisecond, Leader: name == leader,
		})
	}
	v.Leader = v.Member(leader)
	return v
}

// The views of the tests.
func leads() *topology.View      { return viewOf(topology.Leader, "a", true) }
func follows() *topology.View    { return viewOf(topology.Follower, "b", true) }
func leaderless() *topology.View { return viewOf(topology.Candidate, "", false) }

// newClusterHarness returns a harness whose engine is a node of a cluster.
func newClusterHarness(t *testing.T, v *topology.View) (*harness, *fakeCluster) {
	w, f := newHarness(t), new(fakeCluster)
	f.view.Store(v)
	w.engine.Cluster = f
	return w, f
}

// become changes the view, as the node does.
func (f *fakeCluster) become(w *harness, v *topology.View) {
	f.view.Store(v)
	w.engine.LeaderChanged(v)
}

// replies compares the reply of a command, in the notation of redis-cli.
func (w *harness) replies(want string, session int, args ...string) {
	w.t.Helper()
	if got := notation(w.do(session, args...)); got != want {
		w.t.Errorf("%q: %s, want %s", args, got, want)
	}
}

// places are the flags that give a row's place.
const places = engine.Write | engine.ReadOnly | engine.OnNode | engine.OnLeader

// TestPlaces: a row that had no place would run at a follower although it reveals or changes the keyspace.
func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, r := range engine.AllRows {
		if n := bits.OnesCount32(uint32(r.Flags & places)); r.Parse != nil && n != 1 {
			t.Errorf("%s has %d of the flags Write, ReadOnly, OnNode and OnLeader", r.FullName, n)
		}
	}
}

// local are the commands that every node serves, with their subcommands.
var local = strings.Fields("acl asking auth backup bgrewriteaof bgsave client clock cluster command compact config discard echo exec hello info " +
	"lastsave json.debug|help latency memory|doctor memory|help memory|malloc-stats memory|purge memory|stats module monitor multi object|help ping psubscribe " +
	"publish pubsub punsubscribe quit readonly readwrite reset role save script scrub select sentinel shutdown slowlog spublish ssubscribe subscribe " +
	"sunsubscribe time unsubscribe unwatch " +
	"xgroup|help xinfo|help")

func isLocal(r *engine.Row) bool {
	if strings.HasSuffix(r.FullName, "keysinslot") {
		return false
	}
	name, _, _ := strings.Cut(r.FullName, "|")
	return slices.Contains(local, r.FullName) || slices.Contains(local, name)
}

// TestAdmissionByRole: which rows a node serves follows from its role alone.
func TestAdmissionByRole(t *testing.T) {
	t.Parallel()
	moved := func(r *engine.Row, args []string) string {
		if r.AtFollower != "" { // as in Redis
			return string(r.AtFollower)
		}
		slot := 0
		if keys := r.KeysOf(args); len(keys) > 0 {
			slot = topology.Slot(keys[0])
		}
		return fmt.Sprintf("MOVED %d 127.0.0.1:6380", slot)
	}
	always := func(text string) func(*engine.Row, []string) string {
		return func(*engine.Row, []string) string { return text }
	}
	removed := viewOf(topology.Removed, "", false)
	removed.Cause = "this node was removed from the cluster"
	for _, c := range []struct {
		name     string
		view     *topology.View
		readonly bool
		stale    bool // reads are served
		refusal  func(r *engine.Row, args []string) string
	}{
		{"leader", leads(), false, true, nil},
		{"leader, READONLY", leads(), true, true, nil},
		{"leader without a majority", viewOf(topology.Leader, "a", false), false, false, always(string(engine.ErrNoMajority))},
		{"follower", follows(), false, false, moved},
		{"follower, READONLY", follows(), true, true, moved},
		{"follower that is cut off", viewOf(topology.Follower, "b", false), true, true, always(string(engine.ErrNoMajority))},
		{"follower without a leader", viewOf(topology.Follower, "", true), false, false, always(string(engine.ErrNoMajority))},
		{"candidate", leaderless(), false, false, always(string(engine.ErrNoMajority))},
		{"candidate, READONLY", leaderless(), true, true, always(string(engine.ErrNoMajority))},
		{"loading", viewOf(topology.Loading, "", false), true, false, always(string(engine.ErrLoadingData))},
		{"loading while another leads", viewOf(topology.Loading, "b", true), false, false, moved},
		{"loading while another leads, READONLY", viewOf(topology.Loading, "b", true), true, false, func(r *engine.Row, args []string) string {
			if r.Flags&engine.ReadOnly != 0 {
				return string(engine.ErrLoadingData)
			}
			return moved(r, args)
		}},
		{"forming", viewOf(topology.Forming, "", false), true, false, always(string(engine.ErrNoMajority))},
		{"removed", removed, true, false, always("CLUSTERDOWN this node was removed from the cluster")},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, _ := newClusterHarness(t, c.view)
			s := w.session(1)
			s.Readonly = c.readonly
			for _, r := range engine.AllRows {
				if r.Parse == nil {
					continue
				}
				args := strings.Split(r.FullName, "|")
				for len(args) < max(r.Arity, -r.Arity) || len(args) < r.Keys.First+1 {
					args = append(args, "{x}arg")
				}
				want := ""
				if c.refusal != nil && !isLocal(r) && !(c.stale && r.Flags&engine.ReadOnly != 0) {
					want = c.refusal(r, args)
				}
				got := ""
				if err := w.engine.Admit(s, r, args); err != nil {
					got = err.Error()
				}
				if got != want {
					t.Errorf("%s: %q, want %q", r.FullName, got, want)
				}
			}
		})
	}
}

// TestMovedSlots: the slot is that of the row's first key, with hash tags.
func TestMovedSlots(t *testing.T) {
	t.Parallel()
	w, _ := newClusterHarness(t, follows())
	for _, c := range []struct{ slot, command string }{
		{"12182", "GET foo"},
		{"12182", "SET {foo}.x 1"},
		{"12182", "DOC.GET orders {foo}"},
		{"12182", "DEL foo bar"},
		{"12182", "XREAD STREAMS foo 0"},
		{"12182", "XADD foo * a b"},
		{"0", "CONTAINER.LIST"},
		{"0", "DBSIZE"},
		{"12182", "WATCH foo"},
	} {
		w.replies("(error) MOVED "+c.slot+" 127.0.0.1:6380", 1, strings.Fields(c.command)...)
	}
}

// TestTransactionsAtFollowers: as in Redis, a command that is moved fails the transaction.
func TestTransactionsAtFollowers(t *testing.T) {
	t.Parallel()
	w, f := newClusterHarness(t, follows())
	w.replies("OK", 1, "MULTI")
	w.replies("(error) MOVED 12182 127.0.0.1:6380", 1, "SET", "foo", "1")
	w.replies("(error) EXECABORT Transaction discarded because of previous errors.", 1, "EXEC")

	w.replies("OK", 1, "MULTI")
	w.replies("QUEUED", 1, "PING")
	w.replies("1) PONG", 1, "EXEC")

	f.view.Store(leads())
	w.replies("OK", 1, "MULTI")
	w.replies("QUEUED", 1, "PING")
	w.replies("QUEUED", 1, "SET", "foo", "1")
	f.view.Store(follows())
	w.replies("(error) MOVED 12182 127.0.0.1:6380", 1, "EXEC")
	w.replies("(error) ERR EXEC without MULTI", 1, "EXEC")

	f.view.Store(leads())
	w.replies("OK", 1, "SET", "foo", "1")
	w.replies("OK", 1, "READONLY")
	f.view.Store(follows())
	w.replies("OK", 2, "READONLY")
	for _, session := range []int{1, 2} { // one was a client of the leader
		w.replies("OK", session, "MULTI")
		w.replies("QUEUED", session, "GET", "foo")
		w.replies("1) \"1\"", session, "EXEC")
	}
	w.replies("OK", 2, "READWRITE")
	w.replies("(error) MOVED 12182 127.0.0.1:6380", 2, "GET", "foo")
	w.replies("OK", 2, "READONLY")
	w.replies("RESET", 2, "RESET")
	w.replies("(error) MOVED 12182 127.0.0.1:6380", 2, "GET", "foo")
}

// TestWatchAcrossTerms: a node that led, followed and leads again may have missed changes of watched keys.
func TestWatchAcrossTerms(t *testing.T) {
	t.Parallel()
	w, f := newClusterHarness(t, leads())
	exec := func(want string) {
		t.Helper()
		w.replies("OK", 1, "MULTI")
		w.replies("QUEUED", 1, "SET", "foo", "1")
		w.replies(want, 1, "EXEC")
	}
	w.replies("OK", 1, "WATCH", "foo")
	exec("1) OK")
	w.replies("OK", 1, "WATCH", "foo")
	f.view.Store(follows())
	again := leads()
	again.Term = 5
	f.view.Store(again)
	exec("(nil)")
	exec("1) OK")
}

// fakeLog is the log of a cluster that commits everything, unless confirm or fail says otherwise. The
// keyspace uses it in the background too.
type fakeLog struct {
	mu      sync.Mutex // protects what follows
	index   uint64
	until   time.Duration // the earliest of those of Replicate; 0: there is none
	fail    error         // of Replicate
	hold    chan struct{} // Replicate answers when it is closed; nil: at once
	confirm error         // of Confirm
}

// change changes the log.
func (l *fakeLog) change(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// takeUntil returns until, and forgets it.
func (l *fakeLog) takeUntil() (until time.Duration) {
	l.change(func() { until, l.until = l.until, 0 })
	return until
}

func (l *fakeLog) Replicate(_ uint64, moment int64, _ []byte, until time.Duration) (tail replica.Tail, err error) {
	var hold chan struct{}
	l.change(func() {
		if hold = l.hold; until != 0 && (l.until == 0 || until < l.until) {
			l.until = until
		}
	})
	if hold != nil {
		<-hold
	}
	l.change(func() {
		if err = l.fail; err == nil {
			l.index++
			tail = replica.Tail{Position: replica.Position{Index: l.index, Term: 1, Moment: moment}}
		}
	})
	return tail, err
}

func (l *fakeLog) Confirm(time.Duration) (err error) {
	l.change(func() { err = l.confirm })
	return err
}

// newNodeHarness returns a harness whose engine is a node of a cluster, with the keyspace of a leader.
func newNodeHarness(t *testing.T) (*harness, *fakeCluster) {
	w, f := newHarness(t), new(fakeCluster)
	must := func(err error) {
		drill.Check(t, err)
	}
	must(w.engine.Keyspace().Close())
	w.dir, w.log = vfstest.Dir+"/leader", &fakeLog{index: 1}
	w.open()
	ks := w.engine.Keyspace()
	must(ks.Found(replica.Tail{Position: replica.Position{Index: 1, Term: 1}}))
	must(ks.Lead())
	f.view.Store(leads())
	w.engine.Cluster = f
	w.engine.LeaderChanged(leads())
	return w, f
}

// follow deposes the leader.
func (f *fakeCluster) follow(w *harness) {
	f.become(w, follows())
	w.engine.Keyspace().Follow()
}

// TestCommitNowIsBrief: a commit that takes long goes on without the caller of CommitNow, and the next ones
// keep it no longer than a moment.
func TestCommitNowIsBrief(t *testing.T) {
	t.Parallel()
	w, _ := newNodeHarness(t)
	set := func() keyspace.LSN { return w.engine.Execute(w.session(1), []string{"SET", "foo", "1"}).LSN }
	commit := func(lsn keyspace.LSN) error { return w.engine.CommitNow(lsn, w.engine.Deadline(0)) }
	done := set()
	drill.Check(t, commit(done))
	w.log.change(func() { w.log.confirm = replica.ErrNoMajority })
	if err := commit(done); !errors.Is(err, replica.ErrNoMajority) {
		t.Errorf("a read of a leader that is none any more: %v", err)
	}
	w.log.change(func() { w.log.confirm = nil })
	w.log.change(func() { w.log.hold = make(chan struct{}) })
	first := set()
	if err := commit(first); err != engine.ErrCommitting {
		t.Errorf("a long commit: %v", err)
	}
	second, began := set(), clock.Monotonic()
	if err := commit(second); err != engine.ErrCommitting {
		t.Errorf("a commit behind it: %v", err)
	}
	if took := clock.Monotonic() - began; took > engine.LoopPatience/2 {
		t.Errorf("a commit behind a long one took %v", took)
	}
	close(w.log.hold)
	for _, lsn := range []keyspace.LSN{first, second} {
		if err := w.engine.Wait(lsn, w.engine.Deadline(0)); err != nil {
			t.Errorf("the commit did not go on: %v", err)
		}
	}
	if err := commit(second); err != nil || w.engine.Stuck.Load() {
		t.Errorf("a commit later: %v; stuck: %v", err, w.engine.Stuck.Load())
	}
}

// TestRepliesWait: what a leader reads is confirmed after the command, whatever its LSN; what a node says of
// itself waits for no majority.
func TestRepliesWait(t *testing.T) {
	t.Parallel()
	w, f := newNodeHarness(t)
	w.do(1, "SET", "foo", "1")
	for _, c := range []struct {
		waits   bool
		command string
	}{
		{true, "GET foo"}, {true, "GET missing"}, {true, "DBSIZE"}, {true, "WATCH a"}, {true, "SET foo 1"},
		{false, "PING"}, {false, "INFO"}, {false, "CLUSTER STATUS"}, {false, "CLIENT LIST"}, {false, "TIME"}, {false, "ROLE"},
		{false, "CLUSTER DIGEST"}, {false, "SELECT 1"}, {false, "SELECT 0"}, {false, "PUBLISH a b"}, {false, "SUBSCRIBE +switch-master"}, {false, "SUBSCRIBE news"},
	} {
		out := w.engine.Execute(w.session(1), strings.Fields(c.command))
		if got := out.LSN > 0; got != c.waits || out.Reply.Kind == engine.KindError {
			t.Errorf("%s waits for a commit: %v (%s)", c.command, got, notation(out.Reply))
		}
	}
	w.do(2, "READONLY")
	w.log.change(func() { w.log.confirm = replica.ErrNoMajority })
	for _, session := range []int{2, 3} { // READONLY means nothing at a leader
		out := w.engine.Execute(w.session(session), []string{"GET", "foo"})
		if err := w.engine.Wait(out.LSN, 0); engine.CommitFailure(err, out.Changed) != engine.ErrNoMajority {
			t.Errorf("session %d: a read without a majority: %v", session, err)
		}
	}
	f.follow(w)
	out := w.engine.Execute(w.session(2), []string{"GET", "foo"})
	if out.Reply.Str != "1" {
		t.Errorf("a stale read: %s", notation(out.Reply))
	}
	if err := w.engine.Wait(out.LSN, 0); out.LSN != 0 {
		t.Errorf("a stale read waits for a commit: %v", err)
	}
}

// TestDeposedUnnoticed: a node that does not know yet that it was deposed changes nothing, and no read of it
// leaves.
func TestDeposedUnnoticed(t *testing.T) {
	t.Parallel()
	w, f := newNodeHarness(t)
	w.do(1, "SET", "foo", "1")
	read := w.engine.Execute(w.session(1), []string{"GET", "foo"})
	w.engine.Keyspace().Follow()
	w.log.change(func() { w.log.confirm = replica.ErrNoMajority })
	if err := w.engine.Wait(read.LSN, 0); err == nil {
		t.Error("a read leaves that no majority has confirmed")
	}
	commands := []string{"GET foo", "SET foo 2", "DEL foo", "CONTAINER.SET c TTL 5", "DBSIZE", "EVAL return{redis.call('get','foo')} 0", "WAIT 1 0", "EXEC"}
	for i, command := range commands { // as if they had not come
		client, proxied := 10+2*i, 11+2*i
		w.session(proxied).Proxied = true
		if command == "EXEC" {
			for _, session := range []int{client, proxied} {
				w.do(session, "MULTI")
				w.do(session, "SET", "foo", "3")
			}
		}
		for range 2 { // the transaction is still there
			if out := w.engine.Execute(w.session(client), strings.Fields(command)); !out.Deferred || out.Resume == nil {
				t.Errorf("%s: %+v", command, out)
			}
		}
		w.replies("(error) "+string(engine.ErrElsewhere), proxied, strings.Fields(command)...)
	}
	f.become(w, follows())
	w.replies("(error) MOVED 12182 127.0.0.1:6380", 2, "SET", "foo", "2")
	w.do(2, "READONLY")
	w.replies("\"1\"", 2, "GET", "foo")
}

// TestWatchOfReadonly: with cluster-proxy the leader watches the keys. So after READONLY, too, the leader
// runs reads while keys are watched: EXEC would take an older value for what was watched.
func TestWatchOfReadonly(t *testing.T) {
	t.Parallel()
	w, f := newNodeHarness(t)
	w.do(1, "SET", "foo", "1")
	w.engine.Keyspace().Follow()
	f.become(w, follows())
	w.engine.SetProxy(true)
	for _, step := range []struct {
		command   string
		forwarded bool
	}{
		{"READONLY", false}, {"GET foo", false}, {"WATCH foo", true}, {"GET foo", true}, {"EVAL_RO return{redis.call('get',KEYS[1])} 1 foo", true},
		{"MULTI", false}, {"GET foo", false}, {"EXEC", true}, {"GET foo", false},
		{"WATCH foo", true}, {"UNWATCH", false}, {"GET foo", false},
		{"WATCH foo", true}, {"MULTI", false}, {"DISCARD", false}, {"GET foo", false},
	} {
		if out := w.engine.Execute(w.session(2), strings.Fields(step.command)); (out.Forward != nil) != step.forwarded || out.Deferred {
			t.Errorf("%s: %+v", step.command, out)
		}
	}
}

// TestHandover: what a leader has executed before an orderly handover is answered, reads and writes; what
// comes then waits, and is redirected. A deposed leader answers the writes that the log has.
func TestHandover(t *testing.T) {
	t.Parallel()
	for _, orderly := range []bool{true, false} {
		t.Run(fmt.Sprint("orderly ", orderly), func(t *testing.T) {
			w, f := newNodeHarness(t)
			ks := w.engine.Keyspace()
			read := w.engine.Execute(w.session(1), []string{"GET", "foo"})
			write := w.engine.Execute(w.session(1), []string{"SET", "foo", "1"})
			f.become(w, leaderless())
			if orderly {
				ks.Drain()
				drill.Check(t, ks.EndDrain(0))
			} else if err := ks.Settle(write.LSN); err != nil {
				t.Fatal(err)
			}
			w.log.change(func() { w.log.confirm = replica.ErrNoMajority }) // another node leads
			ks.Follow()
			later := w.engine.Execute(w.session(2), []string{"INCR", "foo"})
			if !later.Deferred || later.Resume == nil {
				t.Errorf("a command that comes later: %+v", later)
			}
			if err := w.engine.Wait(read.LSN, 0); (err == nil) != orderly || read.Changed {
				t.Errorf("the read: %v", err)
			}
			if err := w.engine.WaitWritten(write.LSN, 0); err != nil || !write.Changed {
				t.Errorf("the write: %v", err)
			}
			f.become(w, follows())
			w.replies("(error) MOVED 12182 127.0.0.1:6380", 2, "INCR", "foo")
			w.do(3, "READONLY")
			w.replies(`"1"`, 3, "GET", "foo")
		})
	}
}

// TestWaitAOF forces what a session has written to disk, and only then.
func TestWaitAOF(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.engine.Keyspace().SetFsync(keyspace.No) // else the machine's clock decides when the next second is over
	fsyncs := func() int64 { return w.engine.KeyspaceStats().Fsyncs }
	w.do(1, "SET", "a", "1")
	before := fsyncs()
	w.replies("1) (integer) 0\n2) (integer) 0", 1, "WAITAOF", "0", "0", "0")
	w.replies("1) (integer) 1\n2) (integer) 0", 2, "WAITAOF", "1", "0", "0") // it has written nothing
	if got := fsyncs(); got != before {
		t.Errorf("%d fsyncs for nobody", got-before)
	}
	w.replies("1) (integer) 1\n2) (integer) 0", 1, "WAITAOF", "1", "0", "0")
	w.replies("1) (integer) 1\n2) (integer) 0", 1, "WAITAOF", "1", "0", "0")
	w.replies("1) (integer) 1\n2) (integer) 0", 1, "WAITAOF", "0", "0", "0")
	if got := fsyncs(); got != before+1 {
		t.Errorf("%d fsyncs, want 1", got-before)
	}
	w.do(1, "MULTI")
	w.do(1, "SET", "a", "2")
	w.do(1, "WAITAOF", "1", "0", "0")
	if got := notation(w.do(1, "EXEC")); got != "1) OK\n2) 1) (integer) 1\n   2) (integer) 0" { // what was there before
		t.Errorf("EXEC: %s", got)
	}
	for args, want := range map[string]string{
		"2 0 0": "ERR value is out of range, value must between 0 and 1", "a 0 0": "ERR value is not an integer or out of range",
		"1 -1 0": "ERR value is out of range, must be positive", "1 b 0": "ERR value is not an integer or out of range",
		"1 0 -1": "ERR timeout is negative", "1 0 c": "ERR timeout is not an integer or out of range",
	} {
		w.replies("(error) "+want, 1, append([]string{"WAITAOF"}, strings.Fields(args)...)...)
	}
}

// TestWaitDuringAHandover: WAIT of a node that leads no more counts no nodes. It comes again, as if it had
// not come, and the next leader counts.
func TestWaitDuringAHandover(t *testing.T) {
	t.Parallel()
	w, f := newNodeHarness(t)
	w.do(1, "SET", "foo", "1")
	f.lose = w.engine.Keyspace().Follow // the view does not show it yet
	for _, command := range []string{"under way", "later"} {
		if out := w.engine.Execute(w.session(1), []string{"WAIT", "2", "0"}); !out.Deferred || out.Resume == nil {
			t.Errorf("%s: %+v", command, out)
		}
	}
	f.become(w, leaderless())
	if out := w.engine.Execute(w.session(2), []string{"WAIT", "2", "0"}); !out.Deferred || out.Resume == nil {
		t.Errorf("without a leader: %+v", out)
	}
	f.become(w, follows())
	w.replies("(error) "+string(nodes.ErrWaitAtReplica), 2, "WAIT", "2", "0")
	w.replies("(error) ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just local and are not propagated.", 2, "WAITAOF", "1", "2", "0")
	w.session(3).Proxied = true
	w.replies("(error) "+string(engine.ErrElsewhere), 3, "WAIT", "2", "0")
}

// TestFailedTransfer: the clients of a leader that goes on to lead stay.
func TestFailedTransfer(t *testing.T) {
	t.Parallel()
	w, f := newNodeHarness(t)
	w.replies("OK", 1, "SET", "foo", "1")
	w.session(1).Answered()
	f.become(w, leaderless())
	if out := w.engine.Execute(w.session(1), []string{"GET", "foo"}); !out.Deferred || out.Resume == nil {
		t.Errorf("during the transfer: %+v", out)
	}
	f.become(w, leads())
	w.graceOver()
	if len(w.host.disconnected) > 0 {
		t.Errorf("%d clients are disconnected", len(w.host.disconnected))
	}
	w.replies(`"1"`, 1, "GET", "foo")
}

// TestUnsettled: a node that was deposed with uncommitted changes reveals none of them.
func TestUnsettled(t *testing.T) {
	t.Parallel()
	w, f := newNodeHarness(t)
	w.do(1, "SET", "foo", "1")
	w.log.change(func() { w.log.fail = replica.ErrNoMajority })
	out := w.engine.Execute(w.session(1), []string{"SET", "foo", "2"})
	if err := w.engine.Wait(out.LSN, 0); engine.CommitFailure(err, out.Changed) != engine.ErrNotConfirmed {
		t.Errorf("the commit: %v", err)
	}
	f.follow(w)
	w.do(2, "READONLY")
	lsn := out.LSN
	out = w.engine.Execute(w.session(2), []string{"GET", "foo"})
	if out.Reply.Str != string(engine.ErrUnsettled) {
		t.Errorf("a stale read: %s", notation(out.Reply))
	}
	w.log.change(func() { w.log.fail = nil })
	drill.Check(t, w.engine.Keyspace().Settle(lsn))
	w.replies("\"2\"", 2, "GET", "foo")
}

// TestElections: a command that comes during an election waits for its end; in a long outage it is refused at
// once.
func TestElections(t *testing.T) {
	t.Parallel()
	w, f := newNodeHarness(t)
	n := 0
	get := func() engine.Outcome { // of a client that no leader has served
		n++
		return w.engine.Execute(w.session(n), []string{"GET", "foo"})
	}
	resumed := func(out engine.Outcome) {
		t.Helper()
		if !out.Deferred || out.Resume == nil {
			t.Fatalf("the command does not wait: %s", notation(out.Reply))
		}
		select {
		case <-out.Resume:
		case <-time.After(10 * time.Second):
			t.Fatal("the command waits for ever")
		}
	}
	f.become(w, leaderless())
	out := get()
	f.become(w, leads())
	resumed(out)
	if out := get(); out.Deferred || out.Reply.Kind != engine.KindNull {
		t.Errorf("after the election: %+v", out)
	}
	f.become(w, viewOf(topology.Leader, "a", false))
	resumed(get()) // by itself, to look again
	w.engine.Leadership.LostAt.Add(-int64(engine.ElectionPatience) - 1)
	if out := get(); out.Reply.Str != string(engine.ErrNoMajority) {
		t.Errorf("long after the leader was lost: %+v", out)
	}
	f.become(w, leads())
	get()
	f.become(w, leaderless())
	resumed(get()) // another outage
	silent := follows()
	silent.Timeout = time.Second
	w.engine.Leadership.LostAt.Store(0)
	f.become(w, silent) // nothing heard of b for 1.5 s
	resumed(get())
	w.engine.Leadership.LostAt.Add(-int64(engine.ElectionPatience) - 1)
	if out := get(); !strings.HasPrefix(out.Reply.Str, "MOVED ") {
		t.Errorf("a leader that is silent for long: %+v", out)
	}
	f.become(w, viewOf(topology.Removed, "", false))
	if out := get(); out.Reply.Kind != engine.KindError {
		t.Errorf("a node that was removed: %+v", out)
	}
	f.become(w, leads())
}

// TestPatience: what a command waits for a leader, in a loop that commits, and to be written is taken off the
// time of its commit.
func TestPatience(t *testing.T) {
	t.Parallel()
	w, f := newNodeHarness(t)
	patience, electionPatience := engine.Patience()
	set := []string{"SET", "foo", "1"}
	left := func(out engine.Outcome) time.Duration { // for the commit
		t.Helper()
		if out.Reply.Str != "OK" {
			t.Fatal(notation(out.Reply))
		}
		drill.Check(t, w.engine.Wait(out.LSN, w.engine.Deadline(out.Waited)))
		return w.log.takeUntil() - clock.Monotonic()
	}
	if got := left(w.engine.Execute(w.session(1), set)); got > patience || got < patience/2 {
		t.Errorf("a commit has %v", got)
	}
	f.become(w, leaderless())
	if out := w.engine.Execute(w.session(2), set); !out.Deferred {
		t.Fatalf("the command does not wait: %+v", out)
	}
	w.session(2).Awaits -= time.Second
	f.become(w, leads())
	if got := left(w.engine.Execute(w.session(2), set)); got > patience-time.Second {
		t.Errorf("a commit after a wait of 1 s for a leader has %v", got)
	}
	if got := left(w.engine.Execute(w.session(2), set)); got > patience-time.Second {
		t.Errorf("the commit of a command that was read with it has %v", got)
	}
	w.session(2).NoteWait(0)
	if got := left(w.engine.Execute(w.session(2), set)); got < patience/2 {
		t.Errorf("the next commit has %v", got)
	}
	w.session(1).NoteWait(time.Hour)
	if got := left(w.engine.Execute(w.session(1), set)); got > 0 {
		t.Errorf("a commit after the time has %v", got)
	}

	f.become(w, leaderless()) // elections that follow each other
	w.engine.Execute(w.session(3), set)
	w.session(3).Awaits -= electionPatience
	f.become(w, leads())
	f.become(w, leaderless())
	if out := w.engine.Execute(w.session(3), set); out.Reply.Str != string(engine.ErrNoMajority) {
		t.Errorf("a command that has waited for two elections: %+v", out)
	}
	if out := w.engine.Execute(w.session(4), set); !out.Deferred {
		t.Errorf("a command that comes then: %+v", out)
	}
	w.session(5).NoteWait(electionPatience + time.Millisecond) // the commands of a transaction, which were read together
	for _, args := range [][]string{{"MULTI"}, set, set} {
		out := w.engine.Execute(w.session(5), args)
		if out.Deferred {
			t.Errorf("%v after the time waits", args)
		}
	}
}

// TestThrottleFails: a command that cannot commit what was written before it changes nothing, and its time
// for that counts.
func TestThrottleFails(t *testing.T) {
	t.Parallel()
	w, _ := newNodeHarness(t)
	large := strings.Repeat("x", 3<<20)
	w.log.change(func() { w.log.fail = replica.ErrNoMajority })
	for i := range 2 { // without a wait
		w.engine.Execute(w.session(1), []string{"SET", fmt.Sprint("large", i), large})
	}
	w.session(1).NoteWait(time.Second)
	set := []string{"SET", "foo", "1"}
	out := w.engine.Execute(w.session(1), set)
	for out.Deferred { // the keyspace has found in the background that it cannot commit
		<-out.Resume
		out = w.engine.Execute(w.session(1), set)
	}
	if out.Reply.Str != string(engine.ErrNoMajority) {
		t.Errorf("a write: %s", notation(out.Reply))
	}
	if left := w.log.takeUntil() - clock.Monotonic(); left > engine.CommandPatience-time.Second {
		t.Errorf("the commit before it has %v", left)
	}
	w.log.change(func() { w.log.fail = nil })
	drill.Check(t, w.engine.Keyspace().Settle(w.session(1).Revealed))
	w.replies("(nil)", 1, "GET", "foo")
	w.replies("OK", 1, "SET", "foo", "1")
}

// TestDeposedLeader: what waits at a leader ends with it, and so do the connections that it has served.
func TestDeposedLeader(t *testing.T) {
	t.Parallel()
	w, f := newClusterHarness(t, leads())
	w.engine.LeaderChanged(leads())
	w.do(1, "CONTAINER.SET", "c", "TTL", "off", "LOG", "3600")
	w.do(2, "SUBSCRIBE", "+switch-master")
	blocked := w.session(4)
	args := []string{"XREAD", "BLOCK", "0", "STREAMS", "c:deaths", "$"}
	out := w.engine.Execute(blocked, args)
	if !out.Deferred || blocked.Wait == nil {
		t.Fatalf("XREAD does not wait: %+v", out)
	}
	served := w.session(1)
	w.engine.Execute(served, []string{"GET", "foo"}) // its reply waits
	if w.received(2); len(w.host.disconnected) != 0 {
		t.Fatal("clients were disconnected early")
	}
	transaction := w.session(5)
	w.replies("OK", 5, "MULTI")
	w.replies("QUEUED", 5, "SET", "foo", "1")
	f.become(w, follows())
	select {
	case <-out.Resume:
	case <-time.After(10 * time.Second):
		t.Fatal("the blocked command was not woken")
	}
	out = w.engine.Execute(blocked, args)
	if out.Reply.Str != string(engine.ErrDeposed) || !out.Close || blocked.Wait != nil {
		t.Errorf("the blocked command: %+v", out)
	}
	const text = "mymaster 127.0.0.1 6379 127.0.0.1 6380"
	if got := w.received(2); len(got) != 1 || got[0].Elems[2].Str != text {
		t.Errorf("+switch-master: %v", got)
	}
	if len(w.host.disconnected) != 0 {
		t.Errorf("%d clients are disconnected at once", len(w.host.disconnected))
	}
	if out := w.engine.Execute(served, []string{"GET", "foo"}); !out.Deferred || out.Resume == nil {
		t.Errorf("a client of the deposed leader gets a reply: %+v", out)
	}
	w.graceOver()
	if slices.Contains(w.host.disconnected, served) {
		t.Error("a client of the deposed leader is disconnected before it has its replies")
	}
	served.Answered()
	served.Unread = func() bool { return true } // it has sent more, which waits as its command does
	w.graceOver()
	if !slices.Contains(w.host.disconnected, served) {
		t.Error("a client of the deposed leader stays")
	}
	w.replies("(error) MOVED 12182 127.0.0.1:6380", 5, "SET", "foo", "2")
	if w.graceOver(); slices.Contains(w.host.disconnected, transaction) {
		t.Error("a client of the deposed leader is disconnected in a transaction")
	}
	transaction.Received()
	if out := w.engine.Execute(transaction, []string{"EXEC"}); out.Reply.Str != "MOVED 0 127.0.0.1:6380" {
		t.Errorf("EXEC: %+v", out)
	}
	if w.graceOver(); slices.Contains(w.host.disconnected, transaction) {
		t.Error("a client of the deposed leader is disconnected before it hears who leads")
	}
	transaction.Answered()
	unread := true
	transaction.Unread = func() bool { return unread }
	if w.graceOver(); slices.Contains(w.host.disconnected, transaction) {
		t.Error("a client of the deposed leader is disconnected before what it has sent is read")
	}
	unread = false
	if w.graceOver(); !slices.Contains(w.host.disconnected, transaction) {
		t.Error("a client of the deposed leader stays after its transaction")
	}
	if out := w.engine.Execute(w.session(9), []string{"GET", "foo"}); out.Reply.Str != "MOVED 12182 127.0.0.1:6380" {
		t.Errorf("another client: %+v", out)
	}
	f.become(w, leaderless())
	f.become(w, follows())
	if got := w.received(2); len(got) != 0 {
		t.Errorf("the same leader again: %v", got)
	}
	f.become(w, viewOf(topology.Follower, "c", true))
	if got := w.received(2); len(got) != 1 || got[0].Elems[2].Str != "mymaster 127.0.0.1 6380 127.0.0.1 6381" {
		t.Errorf("another leader: %v", got)
	}
}

// TestDeposedAfterTheGreeting: a client that has greeted the leader, and learns at its first command that
// it leads no more, sends the command again over another connection, as one that was served.
func TestDeposedAfterTheGreeting(t *testing.T) {
	t.Parallel()
	w, f := newClusterHarness(t, leads())
	w.engine.LeaderChanged(leads())
	for session := 1; session <= 4; session++ {
		w.do(session, "HELLO", "3")
	}
	w.do(2, "SUBSCRIBE", "news")
	w.do(3, "MULTI")
	f.become(w, viewOf(topology.Leader, "a", false))
	waits := func(session int) {
		t.Helper()
		if out := w.engine.Execute(w.session(session), []string{"INCR", "n"}); !out.Deferred || out.Resume == nil {
			t.Errorf("client %d: %+v", session, out)
		}
	}
	waits(4) // for a majority
	f.become(w, follows())
	w.do(1, "PING")
	w.do(5, "HELLO", "3")
	if w.graceOver(); len(w.host.disconnected) != 0 {
		t.Error("clients that were not served are disconnected")
	}
	waits(1)
	waits(4)
	w.replies("(error) MOVED 3432 127.0.0.1:6380", 3, "INCR", "n")
	w.graceOver()
	w.replies("(error) EXECABORT Transaction discarded because of previous errors.", 3, "EXEC")
	w.graceOver()
	var ids []int64
	for _, s := range w.host.disconnected {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); !slices.Equal(ids, []int64{1, 3, 4}) {
		t.Errorf("disconnected %v, want those who sent a command for the leader: 1, 3, 4", ids)
	}
	w.replies("(error) MOVED 3432 127.0.0.1:6380", 5, "INCR", "n") // it has greeted a follower
}

// TestDeposedByItself: a client whose command hands the lead over has its reply, and that to what it has sent
// with it, before it is disconnected. So has one whose command removes the node.
func TestDeposedByItself(t *testing.T) {
	drill.Bubble(t, func(t *testing.T) {
		w, f := newClusterHarness(t, leads())
		w.engine.LeaderChanged(leads())
		client := w.session(1)
		w.engine.Execute(client, []string{"SET", "a", "1"}) // its reply waits
		f.after = func() {
			f.become(w, follows())
			if w.graceOver(); len(w.host.disconnected) != 0 {
				t.Error("it is disconnected before it has its reply")
			}
		}
		w.replies("OK", 1, "CLUSTER", "TRANSFER", "b")
		client.Answered()
		if w.graceOver(); !slices.Contains(w.host.disconnected, client) {
			t.Error("it stays")
		}
		f.become(w, leads())
		w.host.disconnected = nil
		f.after = func() {
			go func() {
				if drill.Pass(50 * time.Millisecond); len(w.host.disconnected) != 0 {
					t.Error("clients are disconnected while one waits for its reply")
				}
				client.Answered()
			}()
			began := time.Now()
			if w.engine.Suspend(); time.Since(began) < 50*time.Millisecond || len(w.host.disconnected) == 0 {
				t.Errorf("after %v %d clients are disconnected", time.Since(began), len(w.host.disconnected))
			}
		}
		w.engine.Execute(client, []string{"SET", "a", "2"})
		w.replies("OK", 1, "CLUSTER", "REMOVE", "a")
	})
}

// TestAwaitAnswered: before a leader hands over, the clients get the replies to what it has executed.
func TestAwaitAnswered(t *testing.T) {
	t.Parallel()
	w, _ := newClusterHarness(t, leads())
	served := w.session(1)
	w.engine.Execute(served, []string{"GET", "foo"}) // its reply waits
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	w.engine.AwaitAnswered(ended) // one that does not take its replies
	looks, sessions := 0, w.host.sessions
	w.host.sessions = func() []*engine.Session {
		if looks++; looks == 3 {
			served.Answered()
		}
		return sessions()
	}
	if w.engine.AwaitAnswered(t.Context()); looks != 3 {
		t.Errorf("it has looked %d times for replies that had left after three", looks)
	}
}

// TestAwaitQuiet: a deposed leader stays as long as clients ask it, for some time.
func TestAwaitQuiet(t *testing.T) {
	drill.Bubble(t, func(t *testing.T) {
		w, _ := newClusterHarness(t, follows())
		const moved = "(error) MOVED 12182 127.0.0.1:6380"
		w.replies(moved, 1, "GET", "foo")
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		w.engine.AwaitQuiet(ended) // one that never ceases
		var asks sync.WaitGroup
		asks.Go(func() {
			for range 5 {
				drill.Pass(50 * time.Millisecond)
				w.replies(moved, 1, "GET", "foo")
			}
		})
		began := time.Now()
		if w.engine.AwaitQuiet(t.Context()); time.Since(began) != 350*time.Millisecond {
			t.Errorf("it has waited %v for a client that was quiet after 250 ms", time.Since(began))
		}
		asks.Wait()
		began = time.Now()
		w.do(1, "PING")
		if w.engine.AwaitQuiet(t.Context()); time.Since(began) != 0 {
			t.Errorf("it waits %v for a client that asks nothing of the leader", time.Since(began))
		}
	})
}

// TestLoadingSaysWhy: a node that has no keyspace and loads none says what it waits for, with the code that
// makes libraries wait.
func TestLoadingSaysWhy(t *testing.T) {
	t.Parallel()
	for role, want := range map[topology.Role]string{
		topology.Forming: "LOADING the node waits",
		topology.Failed:  "LOADING the node waits",
		topology.Removed: "LOADING the node waits",
	} {
		v := viewOf(role, "", false)
		v.Cause, v.Members = "the node\nwaits", nil
		w, _ := newClusterHarness(t, v)
		ks := w.engine.Keyspace()
		w.engine.SetKeyspace(nil)
		for _, command := range []string{"PING", "SELECT 1", "LASTSAVE", "CLUSTER MYID", "CLUSTER DIGEST", "SENTINEL MASTER mymaster"} {
			if got := w.engine.Execute(w.session(1), strings.Fields(command)).Reply; got.Str != want {
				t.Errorf("%s, %s: %s, want %s", role, command, notation(got), want)
			}
		}
		w.engine.SetKeyspace(ks)
	}
}

// TestStatusOfMembers: only the leader knows the positions of the others.
func TestStatusOfMembers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		view *topology.View
		want string
	}{
		{leads(), "a (integer) 107 (integer) 0, b (integer) 100 (integer) 0, c (integer) 100 (integer) 0"},
		{follows(), "a (integer) 107 (integer) 0, b (nil) (nil), c (nil) (nil)"},
		{leaderless(), "a (integer) 107 (integer) 0, b (nil) (nil), c (nil) (nil)"},
	} {
		w, _ := newClusterHarness(t, c.view)
		var got []string
		for _, m := range field(w.do(1, "CLUSTER", "STATUS"), "members").Elems {
			got = append(got, fmt.Sprintf("%s %s %s", field(m, "name").Str, notation(field(m, "index")), notation(field(m, "lag"))))
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %s, want %s", c.view.Role, text, c.want)
		}
	}
}

// TestUsageOfSubcommands: the usage is what users type.
func TestUsageOfSubcommands(t *testing.T) {
	t.Parallel()
	w, _ := newClusterHarness(t, leads())
	for _, r := range engine.AllRows {
		if !strings.Contains(r.FullName, "|") || !r.IsOwn() {
			continue
		}
		_, usage, ok := strings.Cut(r.WrongArity(strings.Split(r.FullName, "|")).Error(), "; usage: ")
		if typed := strings.ToUpper(strings.ReplaceAll(r.FullName, "|", " ")); !ok || !strings.HasPrefix(usage, typed) {
			t.Errorf("%s: usage %q", r.FullName, usage)
		}
	}
	const want = "ERR wrong number of arguments for 'cluster|add' command; usage: CLUSTER ADD name=host:port"
	if got := w.do(1, "CLUSTER", "ADD"); got.Str != want {
		t.Errorf("%s", notation(got))
	}
}

// TestWithoutKeyspace: while a node loads, it answers about itself and refuses the rest.
func TestWithoutKeyspace(t *testing.T) {
	t.Parallel()
	w, _ := newClusterHarness(t, viewOf(topology.Loading, "", false))
	for range 2 { // nothing waits for a leader after a while
		w.engine.Leadership.Await()
		w.engine.Leadership.LostAt.Store(-int64(engine.ElectionPatience))
	}
	ks := w.engine.Keyspace()
	for _, state := range []string{"none yet", "suspended"} {
		t.Run(state, func(t *testing.T) {
			if w.engine.SetKeyspace(nil); state == "suspended" {
				w.engine.SetKeyspace(ks)
				w.engine.Suspend()
			}
			n := 100
			for _, r := range engine.AllRows {
				if r.Parse == nil || r.FullName == "quit" || r.FullName == "monitor" {
					continue
				}
				args := strings.Split(r.FullName, "|")
				for len(args) < max(r.Arity, -r.Arity) || len(args) < r.Keys.First+1 {
					args = append(args, "1")
				}
				n++ // each gets a session of its own
				reply := w.engine.Execute(w.session(n), args).Reply
				w.engine.Pause.Finish(nil)
				if err := errors.Join(w.engine.Wait(0, 0), w.engine.CommitNow(0, 0)); err != nil {
					t.Errorf("the reply of %q waits for %v", args, err)
				}
				if strings.Contains(reply.Str, "internal error") {
					t.Errorf("%q: %s", args, reply.Str)
				}
				if refused := reply.Str == string(engine.ErrLoadingData); !isLocal(r) && !refused && r.FullName != "exec" {
					t.Errorf("%q: %s", args, notation(reply))
				}
			}
			// The keyspace of before may have what is never committed.
			if reply := w.engine.Execute(w.session(1), []string{"CLUSTER", "DIGEST"}).Reply; reply.Str != string(engine.ErrLoadingData) {
				t.Errorf("CLUSTER DIGEST: %s", notation(reply))
			}
			if info := w.engine.Execute(w.session(1), []string{"INFO", "persistence"}).Reply.Str; !strings.Contains(info, "loading:1\r\n") {
				t.Errorf("INFO: %s", info)
			}
			admin.Info(w.engine)
			for _, s := range w.sessions {
				w.engine.CloseSession(s)
			}
			clear(w.sessions)
		})
	}
	w.engine.SetKeyspace(ks)
}

// TestSessionsKeepTheirKeyspace: a transaction that began to watch in one keyspace must not run in the next
// one.
func TestSessionsKeepTheirKeyspace(t *testing.T) {
	t.Parallel()
	w, _ := newClusterHarness(t, leads())
	w.do(1, "WATCH", "foo")
	w.do(1, "MULTI")
	w.do(1, "SET", "foo", "1")
	before := w.session(1)
	w.engine.Suspend()
	if len(w.host.disconnected) != 1 {
		t.Error("Suspend disconnects no one")
	}
	drill.Check(t, w.engine.Keyspace().Close())
	cluster := w.engine.Cluster
	e := w.engine
	w.open()
	e.SetKeyspace(w.engine.Keyspace())
	w.engine.Cluster = cluster
	out := e.Execute(before, []string{"EXEC"})
	if out.Reply.Str != string(engine.ErrReloaded) || !out.Close {
		t.Errorf("EXEC: %+v", out)
	}
	if e.CloseSession(before); w.do(2, "GET", "foo").Kind != engine.KindNull {
		t.Error("EXEC ran")
	}
}

// A node without a leader names the last one, as a replica of Redis that is cut off, and a node that starts
// does not take the others for failed.
func TestCutOffNodeNamesTheLastLeader(t *testing.T) {
	t.Parallel()
	v := leaderless()
	v.Last = "c"
	w, f := newClusterHarness(t, v)
	master := v.NodeID(v.Member("c"))
	for command, want := range map[string]string{
		"CLUSTER SLOTS":      "3) 1) \"127.0.0.1\"\n      2) (integer) 6381\n      3) \"" + master,
		"CLUSTER SHARDS":     "=>\n      1) 1# \"id\" => \"" + master,
		"CLUSTER NODES":      ":6379@7001 myself,slave " + master,
		"ROLE":               "2) \"127.0.0.1\"\n3) (integer) 6381\n4) \"connect\"",
		"INFO replication":   "master_host:127.0.0.1\r\nmaster_port:6381\r\nmaster_link_status:down\r\n",
		"SENTINEL MASTER me": "\"s_down,o_down,master\"",
	} {
		reply := w.do(1, strings.Fields(command)...)
		if got := reply.Str + notation(reply); !strings.Contains(got, want) {
			t.Errorf("%s: %s has no %s", command, got, want)
		}
	}
	v = leaderless()
	v.Role, v.Last, v.Members[1].Active = topology.Loading, "c", false
	f.view.Store(v)
	if got, want := w.do(1, "CLUSTER", "NODES").Str, ":6380@7002 slave "+master; !strings.Contains(got, want) {
		t.Errorf("%s has no %s", got, want)
	}
}

// INFO does not show a node that lacks what the leader has as one that is up to date.
func TestInfoOfNodesThatLack(t *testing.T) {
	t.Parallel()
	v := leads()
	v.Members[1].Stores, v.Members[1].Behind = true, 9*time.Second
	w, f := newClusterHarness(t, v)
	got := w.do(0, "INFO", "replication").Str
	for _, want := range []string{"slave0:ip=127.0.0.1,port=6380,state=send_bulk,offset=100,lag=9\r\n", "slave1:ip=127.0.0.1,port=6381,state=online,offset=100,lag=1\r\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q has no %q", got, want)
		}
	}
	v = follows()
	v.Members[0].Lag = -1
	f.view.Store(v)
	if got := w.do(0, "INFO", "cluster").Str; !strings.Contains(got, "cluster_lag_entries:-1\r\n") {
		t.Errorf("%q has a lag, which is not known", got)
	}
}

// A node that leads, but cannot do what a leader does, is no healthy one: its state says so.
func TestClusterStateTellsTheCause(t *testing.T) {
	t.Parallel()
	for cause, state := range map[string]string{"": "cluster_state:ok\r\n", "a write to the disk hangs": "cluster_state:fail\r\n"} {
		v := leads()
		v.Cause = cause
		w, _ := newClusterHarness(t, v)
		for _, command := range [][]string{{"CLUSTER", "INFO"}, {"INFO", "cluster"}} {
			if got := w.do(0, command...).Str; !strings.Contains(got, state) {
				t.Errorf("cause %q: %q has no %q", cause, got, state)
			}
		}
	}
}

// TestClusterChanges: the commands that change the cluster reach it, with their arguments.
func TestClusterChanges(t *testing.T) {
	t.Parallel()
	w, f := newClusterHarness(t, leads())
	f.has = 2
	for _, c := range []struct{ command, want string }{
		{"CLUSTER ADD d=127.0.0.1:7004", "OK"},
		{"CLUSTER ADD d", "(error) ERR invalid node 'd': legal is name=host:port, the port of cluster-addr"},
		{"CLUSTER ADD d=host", "(error) ERR invalid node 'd=host': legal is name=host:port, the port of cluster-addr"},
		{"CLUSTER ADD d=:70", "(error) ERR invalid node 'd=:70': legal is name=host:port, the port of cluster-addr"},
		{"CLUSTER ADD d=host:70000", "(error) ERR invalid node 'd=host:70000': legal is name=host:port, the port of cluster-addr"},
		{"CLUSTER ADD -d=host:7000", "(error) ERR invalid name of a node '-d': legal are 1 to 63 letters, digits, dots, dashes and underscores, the first a letter or a digit"},
		{"CLUSTER REMOVE b", "OK"},
		{"CLUSTER ADD d=h\x00:7000", "(error) ERR invalid node 'd=h': legal is name=host:port, the port of cluster-addr"},
		{"CLUSTER ADD d=" + strings.Repeat("h", 256) + ":7000", "(error) ERR invalid node 'd=" + strings.Repeat("h", 126) + "': legal is name=host:port, the port of cluster-addr"},
		{"CLUSTER REMOVE announced", "OK"}, // the leader knows those
		{"CLUSTER REMOVE -x", "(error) ERR invalid name of a node '-x': legal are 1 to 63 letters, digits, dots, dashes and underscores, the first a letter or a digit"},
		{"CLUSTER TRANSFER", "OK"},
		{"CLUSTER TRANSFER c", "OK"},
		{"CLUSTER TRANSFER x", "(error) ERR Unknown node x"},
		{"CLUSTER FAILOVER", "(error) ERR You should send CLUSTER FAILOVER to a replica"},
		{"CLUSTER FAILOVER NOW", "(error) ERR syntax error"},
		{"SENTINEL FAILOVER mymaster", "OK"},
		{"WAIT 2 0", "(integer) 2"},
		{"WAIT 3 10", "(integer) 2"},
		{"WAIT x 0", "(error) ERR value is not an integer or out of range"},
		{"WAIT 0 -1", "(error) ERR timeout is negative"},
		{"WAIT 0 9223372036854775807", "(integer) 2"},
		{"WAITAOF 1 2 0", "1) (integer) 1\n2) (integer) 2"},
		{"WAITAOF 0 3 10", "1) (integer) 1\n2) (integer) 2"},
		{"CLUSTER MEET 127.0.0.1 7000", "(error) ERR CLUSTER MEET does not apply: one group of nodes has all slots, and it agrees on its members itself. See CLUSTER HELP for ADD, REMOVE and TRANSFER"},
	} {
		w.replies(c.want, 1, strings.Fields(c.command)...)
	}
	f.view.Store(follows())
	w.replies("OK", 1, "CLUSTER", "FAILOVER", "TAKEOVER")
	w.replies("(error) "+string(nodes.ErrWaitAtReplica), 1, "WAIT", "1", "0")
	f.err = errors.New("another change is under way")
	w.replies("(error) ERR CLUSTER REMOVE failed: another change is under way", 1, "CLUSTER", "REMOVE", "b")
	want := []string{"add d 127.0.0.1:7004", "remove b", "remove announced", "transfer ", "transfer c", "transfer ", "transfer a", "remove b"}
	if !slices.Equal(f.calls, want) {
		t.Errorf("calls: %q, want %q", f.calls, want)
	}
}

// TestWithoutCluster: a server that is alone replies as a Redis without cluster support.
func TestWithoutCluster(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for _, r := range engine.Table["cluster"].SortedSubcommands {
		args := []string{"CLUSTER", r.Name}
		for len(args) < max(r.Arity, -r.Arity) {
			args = append(args, "d=host:1")
		}
		w.replies("(error) "+string(engine.ErrNoCluster), 1, args...)
	}
	for _, command := range []string{"READONLY", "READWRITE", "ASKING"} {
		w.replies("(error) "+string(engine.ErrNoCluster), 1, command)
	}
	for _, args := range []string{"FAILOVER no", "FAILOVER FORCE now", "ADD d", "ADD -=h:1", "TRANSFER a b"} {
		w.replies("(error) "+string(engine.ErrNoCluster), 1, append([]string{"CLUSTER"}, strings.Fields(args)...)...)
	}
	for args, shown := range map[string]string{"masters": "'masters' ", "master": "'master' ", "none": "'none' ", "": ""} {
		w.replies("(error) ERR unknown command 'SENTINEL', with args beginning with: "+shown, 1, append([]string{"SENTINEL"}, strings.Fields(args)...)...)
	}
	w.replies("OK", 1, "MULTI")
	w.replies("(error) ERR unknown command 'SENTINEL', with args beginning with: 'masters' ", 1, "SENTINEL", "masters")
	w.replies("(error) "+string(engine.ErrExecAbort), 1, "EXEC")
	w.replies("(integer) 0", 1, "WAIT", "1", "0")
	w.replies("1) (integer) 1\n2) (integer) 0", 1, "WAITAOF", "1", "1", "0")
	w.replies("1) \"master\"\n2) (integer) 0\n3) (empty array)", 1, "ROLE")
}

// TestUnknownClientAddresses: no client is sent to nothing, nor told by a removed node that it has the slots.
func TestUnknownClientAddresses(t *testing.T) {
	t.Parallel()
	v := follows()
	v.Leader.Client = ""
	w, f := newClusterHarness(t, v)
	if got := notation(w.do(1, "GET", "foo")); strings.Contains(got, "MOVED") {
		t.Errorf("GET at a follower whose leader has no address: %s", got)
	}
	w.replies("(error) "+string(engine.ErrOutside), 1, "CLUSTER", "SLOTS")
	w.replies("(error) "+string(engine.ErrOutside), 1, "CLUSTER", "SHARDS")

	v = leads()
	v.Members[1].Client = ""
	f.become(w, v)
	for _, what := range []string{"SLOTS", "SHARDS"} {
		if got := notation(w.do(1, "CLUSTER", what)); !strings.Contains(got, "6379") || !strings.Contains(got, "6381") || strings.Contains(got, `""`) {
			t.Errorf("CLUSTER %s lists members without an address, or not those with one:\n%s", what, got)
		}
	}

	f.become(w, viewOf(topology.Removed, "", false))
	w.replies("(error) "+string(engine.ErrOutside), 1, "CLUSTER", "SLOTS")
	w.replies("(error) "+string(engine.ErrOutside), 1, "CLUSTER", "SHARDS")
}
