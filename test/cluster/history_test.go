package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"mayfly/test/ledger"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/redis/go-redis/v9"
)

// Clients of a cluster record what they ask any of its nodes and what they are told. The checker porcupine
// looks for a sequential order of the commands that agrees with the replies and their times.

// historyOp is one command of a history. Each group of items has a key, a document, a counter and a queue.
type historyOp struct {
	group string
	verb  string // setkey, getkey, setdoc, getdoc, setboth, getboth, incr, push, pop
	value int64  // of the writes; never written twice
}

// historyState is what a group holds; 0: nothing.
type historyState struct {
	key, doc, counter int64
	queue             string // the values in it, each with a comma
}

// queueElement is the width of an element of a queue: three fill its item, so that more are in pages.
const queueElement = 400

// unknown is the output of a write whose reply did not come: it may take effect at any time after its call,
// or never.
const unknown = "?"

var clusterHistory = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		groups := make(map[string][]porcupine.Operation)
		for _, op := range history {
			group := op.Input.(historyOp).group
			groups[group] = append(groups[group], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range groups {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return historyState{} },
	Step: func(state, input, output any) (bool, any) {
		s, op := state.(historyState), input.(historyOp)
		want := "OK"
		switch op.verb {
		case "setkey":
			s.key = op.value
		case "setdoc":
			s.doc = op.value
		case "setboth":
			s.key, s.doc = op.value, op.value
		case "incr":
			s.counter++
			want = strconv.FormatInt(s.counter, 10)
		case "push":
			s.queue += fmt.Sprint(op.value, ",")
			want = strconv.Itoa(strings.Count(s.queue, ","))
		case "pop":
			if want, s.queue, _ = strings.Cut(s.queue, ","); want == "" {
				want = "0"
			}
		case "getkey":
			want = strconv.FormatInt(s.key, 10)
		case "getdoc":
			want = strconv.FormatInt(s.doc, 10)
		case "getboth":
			want = fmt.Sprint(s.key, " ", s.doc)
		}
		return output == unknown || output == want, s
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %v", input, output) },
}

// history is the clients and what they have recorded.
type history struct {
	*harness.Cluster
	seed  uint64
	began time.Time
	pace  time.Duration // between two commands of a client

	value   atomic.Int64
	stopped atomic.Bool
	wg      sync.WaitGroup

	mu      sync.Mutex // protects what follows
	ops     []porcupine.Operation
	stale   int                // reads of followers
	slowest time.Duration      // the longest wait for a reply or a refusal
	waits   []historyWait      // for replies and refusals, those that took longer than longestWait
	silent  []time.Duration    // when commands were sent that were never answered, since began
	excused [][2]time.Duration // when nodes could not answer, since began
}

// historyWait is a client's wait for one node.
type historyWait struct {
	from, to time.Duration // since the history began
	asked    string        // of which node what, and how it replied
}

// historyClients is how many clients write and read at once.
func historyClients() int { return drill.Pick(4, 4, 8) }

// longestWait is how long a client waits for a reply, a redirection or a refusal of one node at most. 3 s are
// promised; drills measure it, with what the nodes and the clients take from each other. Beside other tests,
// a reply must come.
const longestWait = 3500 * time.Millisecond

// replyTime is how long a client waits before it gives up.
func replyTime() time.Duration { return drill.Pick(harness.Patience, harness.Patience, 5*time.Second) }

// newHistory makes the clients.
func newHistory(c *harness.Cluster, seed uint64, pace time.Duration) *history {
	c.T.Helper()
	leader := c.Leader()
	if _, err := leader.Ask(c.T.Context(), "CONTAINER.SET", "history", "TTL", "-1"); err != nil {
		c.T.Fatal(err)
	}
	return &history{Cluster: c, seed: seed, began: time.Now(), pace: pace}
}

// begin lets the clients work until stop.
func (h *history) begin() {
	for i := range historyClients() {
		h.wg.Go(func() { h.work(i) })
	}
	for i, n := range h.Nodes {
		h.wg.Go(func() { h.readStale(historyClients()+i, n) })
	}
}

func (h *history) stop() {
	h.stopped.Store(true)
	h.wg.Wait()
}

// await waits until n commands are recorded.
func (h *history) await(n int) {
	h.T.Helper()
	h.Await("a history", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.ops) >= n || h.T.Failed()
	})
}

// groups is how many groups are in use at a time, and groupTime for how long: a short history is easy to
// check.
const (
	groups    = 3
	groupTime = time.Second
)

func (h *history) group(r *rand.Rand) string {
	return fmt.Sprintf("g%d-%d", time.Since(h.began)/groupTime, r.IntN(groups))
}

func (h *history) work(client int) {
	r := rand.New(rand.NewPCG(h.seed, uint64(1000+client)))
	clients := make([]*redis.Client, len(h.Nodes))
	for i, n := range h.Nodes {
		o := n.Options(n.ClientAddr)
		o.ReadTimeout = replyTime()
		clients[i] = redis.NewClient(o)
		defer clients[i].Close()
	}
	byAddr := func(addr string) int {
		for i, n := range h.Nodes {
			if n.ClientAddr == addr {
				return i
			}
		}
		return -1
	}
	at := r.IntN(len(clients))
	pace := time.NewTicker(h.pace)
	defer pace.Stop()
	for !h.stopped.Load() && !h.T.Failed() {
		op := historyOp{group: h.group(r)}
		switch n := r.IntN(24); {
		case n < 3:
			op.verb = "setkey"
		case n < 6:
			op.verb = "setdoc"
		case n < 8:
			op.verb = "setboth"
		case n < 9:
			op.verb = "incr"
		case n < 13:
			op.verb = "getkey"
		case n < 17:
			op.verb = "getdoc"
		case n < 20:
			op.verb = "getboth"
		case n < 22:
			op.verb = "push"
		default:
			op.verb = "pop"
		}
		if strings.HasPrefix(op.verb, "set") || op.verb == "push" {
			op.value = h.value.Add(1)
		}
		if r.IntN(4) == 0 {
			at = r.IntN(len(clients)) // any node: most send the client on
		}
		recorded := porcupine.Operation{ClientId: client, Input: op, Call: time.Since(h.began).Nanoseconds()}
		output, err := h.ask(&op, h.Nodes[at].Name, clients[at])
		for range 3 {
			said, ok := errors.AsType[redis.Error](err)
			if !ok || !strings.HasPrefix(said.Error(), "MOVED ") {
				break
			}
			if next := byAddr(said.Error()[strings.LastIndexByte(said.Error(), ' ')+1:]); next >= 0 {
				at = next
			}
			output, err = h.ask(&op, h.Nodes[at].Name, clients[at])
		}
		recorded.Return = time.Since(h.began).Nanoseconds()
		h.record(recorded, output, err)
		if err != nil {
			at = r.IntN(len(clients))
		}
		<-pace.C
	}
}

// ask performs a command at one node, and notes how long it takes.
func (h *history) ask(op *historyOp, name string, c *redis.Client) (output string, err error) {
	sent := time.Since(h.began)
	output, err = op.perform(h.T.Context(), c)
	wait := time.Since(h.began) - sent
	h.mu.Lock()
	defer h.mu.Unlock()
	if failure, ok := errors.AsType[net.Error](err); ok && failure.Timeout() {
		h.silent = append(h.silent, sent)
		return output, err
	}
	h.slowest = max(h.slowest, wait)
	if drill.On() && wait > longestWait {
		h.waits = append(h.waits, historyWait{sent, sent + wait, fmt.Sprintf("%s of node %s: %q, %v", op.verb, name, output, err)})
	}
	return output, err
}

// record notes a command and its output.
func (h *history) record(op porcupine.Operation, output string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		if !harness.Temporary(err) {
			h.T.Errorf("%+v: %v", op.Input, err)
		}
		refused := false // it has not been carried out
		if said, ok := errors.AsType[redis.Error](err); ok {
			refused = strings.HasPrefix(said.Error(), "MOVED ") || strings.HasPrefix(said.Error(), "LOADING ")
		}
		if refused || strings.HasPrefix(op.Input.(historyOp).verb, "get") {
			return
		}
		output, op.Return = unknown, math.MaxInt64
	}
	op.Output = output
	h.ops = append(h.ops, op)
}

// perform sends the command and returns its output.
func (op historyOp) perform(ctx context.Context, c redis.Cmdable) (string, error) {
	number := func(text string, err error) (string, error) {
		text, err = ledger.NilIsEmpty(text, err)
		text = strings.TrimSuffix(strings.TrimPrefix(text, `{"v":`), "}") // of a document
		if text = strings.TrimLeft(text, "0"); text == "" {
			text = "0"
		}
		return text, err
	}
	do := func(args ...any) *redis.Cmd {
		cmd := redis.NewCmd(ctx, args...)
		_ = c.(interface {
			Process(context.Context, redis.Cmder) error
		}).Process(ctx, cmd)
		return cmd
	}
	key, doc := "key-"+op.group, fmt.Sprintf(`{"v":%d}`, op.value)
	switch op.verb {
	case "setkey":
		return c.Set(ctx, key, op.value, 0).Result()
	case "setdoc":
		return do("DOC.PUT", "history", op.group, doc).Text()
	case "incr":
		n, err := c.Incr(ctx, "counter-"+op.group).Result()
		return strconv.FormatInt(n, 10), err
	case "push":
		n, err := c.RPush(ctx, "queue-"+op.group, fmt.Sprintf("%0*d", queueElement, op.value)).Result()
		return strconv.FormatInt(n, 10), err
	case "pop":
		return number(c.LPop(ctx, "queue-"+op.group).Result())
	case "getkey":
		return number(c.Get(ctx, key).Result())
	case "getdoc":
		return number(do("DOC.GET", "history", op.group).Text())
	case "setboth":
		_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Set(ctx, key, op.value, 0)
			return p.Do(ctx, "DOC.PUT", "history", op.group, doc).Err()
		})
		return "OK", err
	}
	var first *redis.StringCmd
	var second *redis.Cmd
	_, err := c.TxPipelined(ctx, func(p redis.Pipeliner) error {
		first, second = p.Get(ctx, key), p.Do(ctx, "DOC.GET", "history", op.group)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", err
	}
	a, err1 := number(first.Result())
	b, err2 := number(second.Text())
	return a + " " + b, errors.Join(err1, err2)
}

// readStale reads a counter at one node, of the past if the node follows. It never goes back on one
// connection.
func (h *history) readStale(client int, n *harness.Node) {
	r := rand.New(rand.NewPCG(h.seed, uint64(1000+client)))
	c := n.Connect()
	defer c.Close()
	pace := time.NewTicker(h.pace)
	defer pace.Stop()
	for !h.stopped.Load() && !h.T.Failed() {
		conn := c.Conn()
		seen := make(map[string]int)
		err := conn.Do(h.T.Context(), "READONLY").Err()
		for err == nil && !h.stopped.Load() {
			group := h.group(r)
			value := 0
			value, err = conn.Get(h.T.Context(), "counter-"+group).Int()
			if errors.Is(err, redis.Nil) {
				value, err = 0, nil
			}
			if err != nil {
				break
			}
			if value < seen[group] {
				h.T.Errorf("node %s: counter %s was %d, is %d on the same connection", n.Name, group, seen[group], value)
			}
			seen[group] = value
			h.mu.Lock()
			h.stale++
			h.mu.Unlock()
			<-pace.C
		}
		if err != nil && !harness.Temporary(err) {
			h.T.Errorf("node %s: a stale read: %v", n.Name, err)
		}
		_ = conn.Close()
		<-pace.C
	}
}

// excuse notes that nodes cannot answer, from a moment on until now.
func (h *history) excuse(from time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.excused = append(h.excused, [2]time.Duration{from.Sub(h.began), time.Since(h.began)})
}

// check has porcupine check the history.
func (h *history) check() {
	h.T.Helper()
	ops, open := withoutUnseen(h.ops)
	linearizable := true
	for _, part := range clusterHistory.Partition(ops) {
		if result := porcupine.CheckOperationsTimeout(clusterHistory, part, time.Minute); result != porcupine.Ok {
			linearizable = false
			h.T.Errorf("the history of %d commands on a group is not linearizable: %v\n%s", len(part), result, transcript(part))
		}
	}
	h.T.Logf("%d commands of %d clients through all nodes are linearizable: %v; %d without a reply took effect or may have; %d stale reads; the longest wait for a reply or a refusal was %v",
		len(ops), historyClients(), linearizable, open, h.stale, h.slowest.Round(time.Millisecond))
	for _, w := range h.waits {
		wait := w.to - w.from
		for _, span := range h.excused { // a node that is stopped reads the command later
			wait -= max(0, min(w.to, span[1])-max(w.from, span[0]))
		}
		if wait > longestWait {
			h.T.Errorf("a client waited %v for a reply or a refusal after %v, %v of it while the node could answer (%s)", w.to-w.from, w.from, wait, w.asked)
		}
	}
	for _, at := range h.silent {
		if !slices.ContainsFunc(h.excused, func(span [2]time.Duration) bool { return at >= span[0]-replyTime() && at <= span[1] }) {
			h.T.Errorf("a command that was sent after %v was never answered", at)
		}
	}
}

// transcript lists commands by the times of their calls, in ms.
func transcript(ops []porcupine.Operation) string {
	ops = slices.SortedFunc(slices.Values(ops), func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var text strings.Builder
	for _, op := range ops {
		fmt.Fprintf(&text, "%9.2f %9.2f client %d: %s\n", float64(op.Call)/1e6, float64(op.Return)/1e6, op.ClientId, clusterHistory.DescribeOperation(op.Input, op.Output))
	}
	return text.String()
}

// withoutUnseen removes the writes without a reply whose value is in no reply. It is unknown if they took
// effect: the history is linearizable without them if and only if it is with them. It also returns the number
// of those that stay.
func withoutUnseen(ops []porcupine.Operation) (kept []porcupine.Operation, open int) {
	seen := make(map[string]bool)
	for _, op := range ops {
		if in := op.Input.(historyOp); strings.HasPrefix(in.verb, "get") {
			for value := range strings.FieldsSeq(op.Output.(string)) {
				seen[value] = true
			}
		}
	}
	for _, op := range ops {
		in := op.Input.(historyOp)
		if op.Output == unknown && in.verb != "incr" && !seen[strconv.FormatInt(in.value, 10)] {
			continue
		}
		if op.Output == unknown {
			open++
		}
		kept = append(kept, op)
	}
	return kept, open
}

// TestClusterHistoryChecker: the checker accepts what a cluster may do, and rejects what it must not.
func TestClusterHistoryChecker(t *testing.T) {
	t.Parallel()
	at := func(call, end int64, verb string, value int64, output string) porcupine.Operation {
		return porcupine.Operation{Input: historyOp{"g", verb, value}, Call: call, Return: end, Output: output}
	}
	for _, tt := range []struct {
		name string
		ops  []porcupine.Operation
		want bool
	}{
		{"in order", []porcupine.Operation{at(1, 2, "setkey", 1, "OK"), at(3, 4, "getkey", 0, "1")}, true},
		{"lost", []porcupine.Operation{at(1, 2, "setkey", 1, "OK"), at(3, 4, "getkey", 0, "0")}, false},
		{"stale", []porcupine.Operation{at(1, 2, "setkey", 1, "OK"), at(3, 4, "setkey", 2, "OK"), at(5, 6, "getkey", 0, "1")}, false},
		{"half", []porcupine.Operation{at(1, 2, "setboth", 1, "OK"), at(3, 4, "getboth", 0, "1 0")}, false},
		{"no reply, took effect", []porcupine.Operation{at(1, math.MaxInt64, "setkey", 1, unknown), at(3, 4, "getkey", 0, "1")}, true},
		{"no reply, no effect", []porcupine.Operation{at(1, math.MaxInt64, "setkey", 1, unknown), at(3, 4, "getkey", 0, "0")}, true},
		{"seen, then gone", []porcupine.Operation{at(1, math.MaxInt64, "setkey", 1, unknown), at(3, 4, "getkey", 0, "1"), at(5, 6, "getkey", 0, "0")}, false},
		{"counted twice", []porcupine.Operation{at(1, 2, "incr", 0, "1"), at(3, 4, "incr", 0, "3")}, false},
		{"counted without a reply", []porcupine.Operation{at(1, 2, "incr", 0, "1"), at(1, math.MaxInt64, "incr", 0, unknown), at(3, 4, "incr", 0, "3")}, true},
	} {
		ops, _ := withoutUnseen(tt.ops)
		if got := porcupine.CheckOperations(clusterHistory, ops); got != tt.want {
			t.Errorf("%s: linearizable %v, want %v", tt.name, got, tt.want)
		}
	}
}
