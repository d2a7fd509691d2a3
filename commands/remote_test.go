package commands

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mayfly/cluster/bus"
	"mayfly/cluster/topology"
	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/keyspace"
	"mayfly/keyspace/replica"
	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

// brokers are engines whose brokers are connected: the first leads, the others follow.
type brokers struct {
	t     *testing.T
	nodes []*harness
	views []*fakeCluster
	buses []*bus.Bus
}

func newBrokers(t *testing.T, n int) *brokers {
	b := &brokers{t: t}
	for i := range n {
		var w *harness
		var f *fakeCluster
		if i == 0 {
			w, f = newNodeHarness(t)
		} else {
			w, f = newClusterHarness(t, follows())
		}
		b.nodes, b.views = append(b.nodes, w), append(b.views, f)
		b.buses = append(b.buses, bus.New(bus.Options{Deliver: w.engine.ReceiveMessages, Wanted: w.engine.EventsWanted, Log: zerolog.Nop()}))
		t.Cleanup(b.buses[i].Close)
		w.engine.SetBus(b.buses[i])
	}
	for i := range n {
		for j := range n {
			if i == j {
				continue
			}
			b.buses[i].Connect(uint64(j+1), func(context.Context) (net.Conn, error) {
				here, there := net.Pipe()
				go b.buses[j].Serve(uint64(i+1), there)
				return here, nil
			})
		}
	}
	return b
}

// messages waits for n messages of a session, and for what the nodes have sent before they send to a fence.
// Each is its words.
func (b *brokers) messages(node, session, n int) (list []string) {
	b.t.Helper()
	w := b.nodes[node]
	has := func(n int) func() bool {
		return func() bool {
			for _, m := range w.received(session) {
				words := []string{}
				for _, e := range m.Elems {
					words = append(words, e.Str)
				}
				list = append(list, strings.Join(words, " "))
			}
			return len(list) >= n
		}
	}
	drill.Await(b.t, "messages", has(n), func() string { return fmt.Sprintf("node %d, session %d: %q", node, session, list) })
	const fence = 99 // a session; no pattern gets what comes to its channel
	w.do(fence, "SSUBSCRIBE", "fence")
	came := len(w.received(fence))
	for _, other := range b.nodes {
		other.do(fence+1, "SPUBLISH", "fence", "")
	}
	drill.Await(b.t, "the fence", func() bool { came += len(w.received(fence)); return came >= len(b.nodes) })
	has(0)()
	return list
}

func (b *brokers) expect(node, session int, want ...string) {
	b.t.Helper()
	if got := b.messages(node, session, len(want)); !slices.Equal(got, want) {
		b.t.Errorf("node %d, session %d: got %q, want %q", node, session, got, want)
	}
}

// TestMessagesReachAllNodes: whichever node publishes, each subscriber of any node gets the message once, and
// the reply counts those of the publisher's node, as in Redis Cluster.
func TestMessagesReachAllNodes(t *testing.T) {
	t.Parallel()
	b := newBrokers(t, 3)
	for i, w := range b.nodes {
		w.do(10, "SUBSCRIBE", "news")
		w.do(11, "PSUBSCRIBE", "n*")
		w.do(12, "SSUBSCRIBE", "news")
		if i == 2 {
			w.do(13, "SUBSCRIBE", "news")
		}
	}
	for i, w := range b.nodes {
		text := fmt.Sprint("from ", i)
		local := 2
		if i == 2 {
			local = 3
		}
		w.replies(fmt.Sprintf("(integer) %d", local), 1, "PUBLISH", "news", text)
		w.replies("(integer) 1", 1, "SPUBLISH", "news", text)
		w.replies("(integer) 0", 1, "PUBLISH", "else", text)
		for j := range b.nodes {
			b.expect(j, 10, "message news "+text)
			b.expect(j, 11, "pmessage n* news "+text)
			b.expect(j, 12, "smessage news "+text)
		}
		b.expect(2, 13, "message news "+text)
	}
	b.nodes[1].replies("1) \"news\"\n2) (integer) 1", 1, "PUBSUB", "NUMSUB", "news")
	b.nodes[0].replies("1) \"news\"", 1, "PUBSUB", "CHANNELS")
}

// TestMessagesAcrossNodesInTransactions: at a follower, too, a transaction publishes its messages in their
// order.
func TestMessagesAcrossNodesInTransactions(t *testing.T) {
	t.Parallel()
	b := newBrokers(t, 2)
	b.nodes[0].do(10, "SUBSCRIBE", "news")
	b.nodes[1].do(10, "SUBSCRIBE", "news")
	b.nodes[1].replies("OK", 1, "MULTI")
	b.nodes[1].replies("QUEUED", 1, "PUBLISH", "news", "1")
	b.nodes[1].replies("QUEUED", 1, "PUBLISH", "news", "2")
	b.nodes[1].replies("1) (integer) 1\n2) (integer) 1", 1, "EXEC")
	b.nodes[0].replies("OK", 1, "MULTI")
	b.nodes[0].replies("QUEUED", 1, "SET", "k", "v")
	b.nodes[0].replies("QUEUED", 1, "PUBLISH", "news", "3")
	b.nodes[0].replies("1) OK\n2) (integer) 1", 1, "EXEC")
	b.nodes[0].replies("(integer) 1", 1, "PUBLISH", "news", "4")
	for node := range 2 {
		got := b.messages(node, 10, 4)
		if slices.Sort(got); strings.Join(got, ",") != "message news 1,message news 2,message news 3,message news 4" {
			t.Errorf("node %d: %q", node, got)
		}
	}
	for range 100 { // of one publisher: in its order, whether they wait for a commit or not
		b.nodes[0].do(1, "SET", "k", "v")
		b.nodes[0].do(1, "PUBLISH", "news", "a")
		b.nodes[0].do(1, "PUBLISH", "news", "b")
	}
	for i, m := range b.messages(1, 10, 200) {
		if want := "message news " + "ab"[i%2:i%2+1]; m != want {
			t.Fatalf("message %d is %q, want %q", i, m, want)
		}
	}
}

// TestEventsReachFollowers: events of items, which the leader makes, reach subscribers of other nodes, on the
// channels on which they would get them at the leader.
func TestEventsReachFollowers(t *testing.T) {
	t.Parallel()
	b := newBrokers(t, 3)
	leader := b.nodes[0]
	leader.host.options["notify-keyspace-events"] = "KEA"
	leader.engine.Broker.SetEventClasses(events.ClassAll | events.ToKeyspace | events.ToKeyevent)
	leader.do(1, "CONTAINER.SET", "carts", "TTL", "off")
	number := leader.do(1, "CONTAINER.GET", "carts")
	db := ""
	for i := 0; i+1 < len(number.Elems); i += 2 {
		if number.Elems[i].Str == "number" {
			db = strconv.FormatInt(number.Elems[i+1].Int, 10)
		}
	}
	if db == "" {
		t.Fatalf("no number: %s", notation(number))
	}
	b.nodes[1].do(10, "SUBSCRIBE", "__keyevent@0__:set", "__keyevent@0__:expired")
	b.nodes[1].do(11, "PSUBSCRIBE", "__keyspace@carts__:*", "__keyspace@"+db+"__:*", "__key*__:7")
	b.awaitWanted("__keyspace@carts__:7") // the last to be announced, which waits announcePatience at most
	if b.nodes[2].engine.Broker.ChannelsFor(events.Set) != 0 {
		t.Error("a follower that has no subscriber makes events")
	}
	leader.do(1, "SET", "k", "v")
	leader.do(1, "DOC.PUT", "carts", "7", "{}")
	b.expect(1, 10, "message __keyevent@0__:set k")
	b.expect(1, 11, "pmessage __keyspace@carts__:* __keyspace@carts__:7 doc.put", "pmessage __key*__:7 __keyspace@carts__:7 doc.put",
		"pmessage __keyspace@"+db+"__:* __keyspace@"+db+"__:7 doc.put")
	if !leader.engine.Broker.DeathsHeard() {
		t.Error("the leader does not look for deaths that another node wants to hear of")
	}
	var tx keyspace.Tx
	leader.engine.Keyspace().BeginSweep(&tx)
	leader.engine.Broker.OnDeath(tx.Container("0"), "k", 0)
	tx.Close()
	b.expect(1, 10, "message __keyevent@0__:expired k")
	b.nodes[1].do(10, "UNSUBSCRIBE")
	b.nodes[1].do(11, "PUNSUBSCRIBE")
	b.await("the leader to make no events any more", func() bool { return leader.engine.Broker.ChannelsFor(events.Set) == 0 })
	b.nodes[2].do(10, "PSUBSCRIBE", "*")
	b.awaitWanted("__keyspace@0__:k")
	leader.do(1, "SET", "k", "v")
	b.expect(2, 10, "pmessage * __keyspace@0__:k set", "pmessage * __keyevent@0__:set k")
	b.nodes[2].engine.CloseSession(b.nodes[2].session(10))
	b.await("the leader to make no events any more", func() bool { return leader.engine.Broker.ChannelsFor(events.Set) == 0 })
}

// awaitWanted waits until the leader knows that another node wants a channel.
func (b *brokers) awaitWanted(channel string) {
	b.t.Helper()
	leader := b.nodes[0].engine
	b.await("the leader to know of a subscription", func() bool {
		return leader.Broker.ChannelsFor(events.Set) != 0 && leader.Broker.Remote.Bus.Wants(channel, "")
	})
}

func (b *brokers) await(what string, ok func() bool) {
	b.t.Helper()
	drill.Await(b.t, what, ok)
}

// TestOnlyCommittedMessagesLeave: a message of a transaction, or an event, leaves for other nodes only once
// it is committed. A message outside of transactions waits for the client's earlier commands, and leaves even
// if their commit fails.
func TestOnlyCommittedMessagesLeave(t *testing.T) {
	t.Parallel()
	w, _ := newNodeHarness(t)
	r := &recordedBus{sent: make(chan bus.Message, 100), wants: true}
	w.engine.SetBus(r)
	w.engine.EventsWanted(true)
	w.engine.Broker.SetEventClasses(events.ClassAll | events.ToKeyevent)
	execute := func(session int, command string) engine.Outcome {
		return w.engine.Execute(w.session(session), strings.Fields(command))
	}
	w.do(1, "SET", "k", "1")
	if got := r.next(t); got != "__keyevent@0__:set k" {
		t.Errorf("sent: %q", got)
	}
	w.log.change(func() { w.log.fail, w.log.hold = replica.ErrNoMajority, make(chan struct{}) }) // a write after the failure would be refused
	lsn := execute(3, "SET k 2").LSN
	for _, command := range []string{"MULTI", "SET k 3", "PUBLISH bound x", "EXEC", "PUBLISH free x"} {
		execute(1, command)
	}
	execute(2, "PUBLISH other x") // of a client that has nothing to wait for, but its place
	close(w.log.hold)
	if got := r.next(t) + ", " + r.next(t); got != "free x, other x" {
		t.Errorf("sent: %q", got)
	}
	w.log.change(func() { w.log.fail = nil })
	drill.Check(t, w.engine.Keyspace().Settle(lsn))
	w.do(1, "SET", "k", "4")
	for got := ""; got != "__keyevent@0__:set k"; {
		got = r.next(t) // events of before whose commit has succeeded in the end
	}
}

// TestNobodyPaysWithoutListeners: without a subscriber who may match them, no events are made and no
// announcements sent.
func TestNobodyPaysWithoutListeners(t *testing.T) {
	t.Parallel()
	w, _ := newNodeHarness(t)
	r := &recordedBus{sent: make(chan bus.Message, 100)}
	w.engine.SetBus(r)
	w.engine.Broker.SetEventClasses(events.ClassAll | events.ToKeyevent)
	w.do(10, "SUBSCRIBE", "news", "__key", "__keyspace")
	w.do(10, "PSUBSCRIBE", "news*", "_-*", "__keyspac")
	w.do(10, "SSUBSCRIBE", "__keyspace@0__:k")
	if len(r.announced) != 0 {
		t.Errorf("announced %+v", r.announced)
	}
	w.do(1, "SET", "k", "v")
	w.engine.EventsWanted(true)
	w.do(1, "SET", "k", "v") // another node wants events, but not this one
	w.received(10)
	if len(r.sent) != 0 {
		t.Errorf("sent %+v", <-r.sent)
	}
	w.do(10, "PSUBSCRIBE", "__key*")
	w.do(11, "PSUBSCRIBE", "__key*")
	w.do(10, "PUNSUBSCRIBE")
	if n := len(r.announced); n != 1 || len(r.announced[0].Patterns) != 1 {
		t.Errorf("announced %+v", r.announced)
	}
	for i := range 100 {
		w.do(12, "SUBSCRIBE", fmt.Sprint("__keyspace@0__:", i))
	}
	if n := len(r.announced); n > engine.MostFiltered+2 || !r.announced[n-1].All {
		t.Errorf("%d announcements, the last %+v", n, r.announced[n-1])
	}
	w.do(12, "UNSUBSCRIBE")
	w.do(11, "PUNSUBSCRIBE")
	if n := len(r.announced); !r.announced[n-1].Empty() {
		t.Errorf("the last announcement: %+v", r.announced[n-1])
	}
}

// TestSubscribersOfADeposedLeader: subscribers stay where they are, even those whose connection the leader
// has served, as long as they can do nothing else with it.
func TestSubscribersOfADeposedLeader(t *testing.T) {
	t.Parallel()
	w, f := newClusterHarness(t, leads())
	w.engine.LeaderChanged(leads())
	for session := 1; session <= 4; session++ {
		w.do(session, "GET", "foo")
		w.do(session, "SUBSCRIBE", "news")
	}
	w.session(5).Proto = 3
	w.do(5, "GET", "foo")
	w.do(5, "SUBSCRIBE", "news")
	w.do(6, "PSUBSCRIBE", "*")
	f.become(w, follows())
	w.do(1, "UNSUBSCRIBE", "news")
	if !w.last.Close {
		t.Error("a client that the leader has served, and that could send commands again, stays")
	}
	w.graceOver()
	var ids []int64
	for _, s := range w.host.disconnected {
		ids = append(ids, s.ID)
	}
	if !slices.Equal(ids, []int64{1, 5}) {
		t.Errorf("disconnected %v, want the client that has unsubscribed and that of RESP3: 1 and 5", ids)
	}
	w.do(2, "RESET")
	if !w.last.Close {
		t.Error("a client stays after RESET")
	}
	w.do(3, "UNSUBSCRIBE", "other")
	if w.last.Close {
		t.Error("a client that still subscribes is disconnected")
	}
	if out := w.engine.Execute(w.session(3), []string{"GET", "foo"}); out.Deferred || !strings.HasPrefix(out.Reply.Str, "MOVED ") {
		t.Errorf("a wrong command of a subscriber: %+v", out)
	}
	w.do(6, "PUNSUBSCRIBE")
	if w.last.Close {
		t.Error("a client that no leader has served is disconnected")
	}
}

// TestPublishWithoutALeader: subscriptions and messages need no majority and no keyspace.
func TestPublishWithoutALeader(t *testing.T) {
	t.Parallel()
	for _, role := range []topology.Role{topology.Candidate, topology.Loading, topology.Forming, topology.Removed} {
		w, _ := newClusterHarness(t, viewOf(role, "", false))
		ks := w.engine.Keyspace()
		if !role.Open() {
			w.engine.SetKeyspace(nil)
		}
		w.engine.SetBus(&recordedBus{sent: make(chan bus.Message, 100)})
		if out := w.engine.Execute(w.session(1), []string{"SUBSCRIBE", "news"}); out.Reply.Kind != engine.KindSeveral {
			t.Errorf("%s: SUBSCRIBE: %s", role, notation(out.Reply))
		}
		if out := w.engine.Execute(w.session(2), []string{"PUBLISH", "news", "x"}); out.Reply.Int != 1 || out.LSN != 0 {
			t.Errorf("%s: PUBLISH: %+v", role, out)
		}
		if got := w.received(1); len(got) != 1 {
			t.Errorf("%s: received %v", role, got)
		}
		w.engine.SetKeyspace(ks)
	}
}

// recordedBus notes what an engine sends and announces.
type recordedBus struct {
	sent      chan bus.Message
	announced []bus.Filter
	wants     bool
}

func (r *recordedBus) Send(list []bus.Message) {
	for _, m := range list {
		r.sent <- m
	}
}

func (r *recordedBus) Wants(string, string) bool { return r.wants }

func (r *recordedBus) Announce(f bus.Filter) { r.announced = append(r.announced, f) }

func (r *recordedBus) Announced(context.Context) {}

func (r *recordedBus) Dropped() uint64 { return 0 }

func (r *recordedBus) next(t *testing.T) string {
	t.Helper()
	select {
	case m := <-r.sent:
		return m.Channel + " " + m.Text
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was sent")
		return ""
	}
}
