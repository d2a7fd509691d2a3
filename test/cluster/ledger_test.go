package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"mayfly/test/ledger"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// clockSlack is how far the clock of a cluster may be from the machine's: a new leader's starts at the end of
// the leased time, which is a second ahead.
const clockSlack = 3 * time.Second

// ledgerWorker is a client of a cluster that keeps a ledger.
type ledgerWorker interface {
	// resync reads what the worker writes and compares it with the ledger, from which it goes on.
	resync(c *redis.Client) error
	// step writes once. Its error says that it is not known what was carried out.
	Step(c *redis.Client) error
	// snapshot reads all from a node at rest.
	snapshot(conn *redis.Conn) ([]string, error)
}

// clusterLedger is the workers of a drill, each with the ledger of what was acknowledged.
type clusterLedger struct {
	*harness.Cluster
	workers      []ledgerWorker
	items        []*ledgerItems
	transactions []*ledgerTransactions
	deaths       []*ledgerDeaths

	pace    time.Duration // between two steps of a worker
	answer  time.Duration // how long a worker waits for one
	stopped atomic.Bool
	wg      sync.WaitGroup

	mu      sync.Mutex    // protects what follows
	current *harness.Node // the leader, as last found
	steps   []int         // acknowledged, of each worker
}

const (
	ledgerAccounts = 10
	ledgerBalance  = 1000
)

// newLedger makes the workers and what they need in the cluster.
func newLedger(c *harness.Cluster, seed uint64) *clusterLedger {
	t := c.T
	t.Helper()
	l := &clusterLedger{Cluster: c, pace: drill.Pick[time.Duration](100, 100, 2) * time.Millisecond, answer: 5 * time.Second}
	for _, container := range []string{"drill", "fading"} {
		do(c, "CONTAINER.SET", container, "TTL", "-1")
	}
	do(c, "CONTAINER.SET", "ledger", "TTL", "3600")
	do(c, "CONTAINER.SET", ledger.DyingName, "TTL", "3600", "LOG", "1000000", "MAXLEN", "100000000")
	for i := range ledgerAccounts {
		do(c, "SET", ledger.Account(i), ledgerBalance)
	}
	random := func(n int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(n))) }
	for n := range drill.Pick(2, 2, 4) {
		w := ledger.NewCrashWorker(t, n, random(n+1))
		w.Cluster, w.Slack = true, clockSlack
		l.items = append(l.items, &ledgerItems{w})
		l.workers = append(l.workers, l.items[n])
	}
	for n := range drill.Pick(2, 2, 3) {
		w := &ledgerTransactions{ExecWorker: ledger.ExecWorker{T: t, Number: n, Accounts: ledgerAccounts, R: random(n + 100)}}
		l.transactions = append(l.transactions, w)
		l.workers = append(l.workers, w)
	}
	for n := range drill.Pick(1, 1, 2) {
		w := &ledgerDeaths{t: t, ctx: t.Context(), number: n, r: random(n + 200), sent: make(map[string]*ledger.Dying)}
		l.deaths = append(l.deaths, w)
		l.workers = append(l.workers, w)
	}
	l.steps = make([]int, len(l.workers))
	return l
}

// begin lets the workers write until pause.
func (l *clusterLedger) begin() {
	l.stopped.Store(false)
	for i, w := range l.workers {
		l.wg.Go(func() { l.work(i, w) })
	}
}

// pause stops the workers and waits for them.
func (l *clusterLedger) pause() {
	l.stopped.Store(true)
	l.wg.Wait()
}

func (l *clusterLedger) over() bool { return l.stopped.Load() || l.T.Failed() }

// work lets a worker write at the leader, and find the next one after an error.
func (l *clusterLedger) work(number int, w ledgerWorker) {
	interval := max(l.pace, 1)
	if _, ok := w.(*ledgerDeaths); ok {
		interval = max(l.pace, 10*time.Millisecond) // no flood: reading the log takes its time
	}
	pace := time.NewTicker(interval)
	defer pace.Stop()
	for !l.over() {
		<-pace.C
		leader := l.leading()
		if leader == nil {
			continue
		}
		o := leader.Options(leader.ClientAddr)
		o.ReadTimeout = l.answer
		c := redis.NewClient(o)
		err := w.resync(c)
		for err == nil && !l.over() {
			if err = w.Step(c); err == nil {
				l.mu.Lock()
				l.steps[number]++
				l.mu.Unlock()
				<-pace.C
			}
		}
		_ = c.Close()
		if err != nil && !harness.Temporary(err) {
			l.T.Error(err)
		}
		l.lost(leader)
	}
}

// leading returns the leader as last found, or finds it. It is nil if there is none.
func (l *clusterLedger) leading() *harness.Node {
	l.mu.Lock()
	current := l.current
	l.mu.Unlock()
	if current != nil {
		return current
	}
	found := l.FindLeader(l.T.Context())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = found
	return found
}

// lost notes that a node no longer leads.
func (l *clusterLedger) lost(n *harness.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == n {
		l.current = nil
	}
}

// acknowledged returns the number of acknowledged steps of each worker.
func (l *clusterLedger) acknowledged() []int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.steps)
}

// awaitSteps waits until n more steps of each worker are acknowledged, and returns how long that took.
func (l *clusterLedger) awaitSteps(n int) time.Duration {
	l.T.Helper()
	began, before := time.Now(), l.acknowledged()
	l.Await("acknowledged writes", func() bool {
		least := n
		for i, now := range l.acknowledged() {
			least = min(least, now-before[i])
		}
		return least >= n || l.T.Failed()
	})
	return time.Since(began)
}

// verify compares all that was acknowledged with the cluster at rest, and the nodes with each other.
func (l *clusterLedger) verify() {
	t := l.T
	t.Helper()
	if t.Failed() {
		return
	}
	atLeader := func(what string, f func(c *redis.Client) error) {
		t.Helper()
		l.Await(what, func() bool {
			c := l.Leader().Connect()
			defer c.Close()
			err := f(c)
			if err != nil && !harness.Temporary(err) {
				t.Fatalf("%s: %v", what, err)
			}
			return err == nil
		})
	}
	for _, w := range l.workers {
		atLeader(fmt.Sprintf("all that %T has written", w), w.resync)
	}
	for _, w := range l.deaths {
		atLeader("the deaths", w.judge)
	}
	atLeader("the accounts", func(c *redis.Client) error {
		sum := 0
		for i := range ledgerAccounts {
			n, err := c.Get(t.Context(), ledger.Account(i)).Int()
			if err != nil {
				return err
			}
			sum += n
		}
		if sum != ledgerAccounts*ledgerBalance {
			t.Errorf("the accounts hold %d together, not %d", sum, ledgerAccounts*ledgerBalance)
		}
		return nil
	})
	if t.Failed() {
		return
	}
	l.Settle()
	l.compare()
	atLeader("an empty log", func(c *redis.Client) error { return c.XTrimMaxLen(t.Context(), ledger.DyingStream, 0).Err() })
	for _, w := range l.deaths {
		clear(w.sent)
	}
}

// compare reads everything from all nodes and compares it: the digest is the nodes' own, this is not.
func (l *clusterLedger) compare() {
	l.T.Helper()
	read := func(n *harness.Node) (all [][]string) {
		c := n.Connect()
		defer c.Close()
		conn := c.Conn()
		defer conn.Close()
		if err := conn.Do(l.T.Context(), "READONLY").Err(); err != nil {
			l.T.Errorf("node %s: READONLY: %v", n.Name, err)
		}
		for _, w := range l.workers {
			list, err := w.snapshot(conn)
			if err != nil {
				l.T.Errorf("node %s: %T: %v", n.Name, w, err)
			}
			all = append(all, list)
		}
		return all
	}
	var differences []string
	equal := func() bool {
		differences = nil
		leader := l.Leader()
		want := read(leader)
		for _, n := range l.Others(leader) {
			for i, got := range read(n) {
				if difference := differ(got, want[i]); difference != "" {
					differences = append(differences, fmt.Sprintf("%s and %s: %s", leader.Name, n.Name, difference))
				}
			}
		}
		return len(differences) == 0
	}
	// Followers are in the past: what has just died lives there for a moment.
	harness.WaitFor(l.T, "equal nodes", func() bool { return equal() || l.T.Failed() }, func() string { return strings.Join(differences, "\n") })
}

// differ returns the first difference of two lists, empty if there is none.
func differ(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("%.300q, %.300q", want[i], got[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d and %d answers", len(want), len(got))
	}
	return ""
}

// figures says what the ledger has seen. Each worker has made the steps that awaitSteps has waited for.
func (l *clusterLedger) figures() string {
	items, faded, transactions, deaths := 0, 0, 0, 0
	for _, w := range l.items {
		items += w.Acknowledged
		faded += w.Faded
	}
	for _, w := range l.transactions {
		transactions += w.done
	}
	for _, w := range l.deaths {
		deaths += w.judged
	}
	if !l.T.Failed() && deaths == 0 {
		l.T.Error("no death was judged")
	}
	return fmt.Sprintf("acknowledged: %d commands, %d transactions, %d deaths; %d documents seen dead by a default", items, transactions, deaths, faded)
}

// ledgerItems is the worker of TestCrash.
type ledgerItems struct{ *ledger.CrashWorker }

func (w *ledgerItems) resync(c *redis.Client) error {
	from := time.Now()
	texts, err := w.readUnits(c.Pipeline())
	if err != nil {
		return err
	}
	to := time.Now()
	for i, u := range w.Units {
		drill.Report(w.T, u.Settle(texts[i], from, to))
	}
	return nil
}

func (w *ledgerItems) readUnits(pipe redis.Pipeliner) (texts []string, err error) {
	var states []func() (string, error)
	for _, u := range w.Units {
		states = append(states, u.Read(pipe))
	}
	_, _ = pipe.Exec(w.Ctx) // each reply is looked at
	for i := range w.Units {
		text, err := states[i]()
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
	}
	return texts, nil
}

func (w *ledgerItems) snapshot(conn *redis.Conn) ([]string, error) {
	texts, err := w.readUnits(conn.Pipeline())
	for i := range texts {
		u := w.Units[i]
		texts[i] = fmt.Sprint(u.Name, " ", texts[i], " ", u.Ends)
	}
	return texts, err
}

// ledgerTransactions is the worker of TestCrashInTransactions.
type ledgerTransactions struct {
	ledger.ExecWorker
	done int // acknowledged
}

func (w *ledgerTransactions) resync(c *redis.Client) error {
	conn := c.Conn()
	defer conn.Close()
	found, doc, err := w.Read(conn)
	if err == nil {
		w.Judge(found, doc)
	}
	return err
}

func (w *ledgerTransactions) Step(c *redis.Client) error {
	w.Sent++
	err := w.Transact(w.T.Context(), c)
	if err == nil {
		w.Acknowledged = w.Sent
		w.done++
	}
	return err
}

func (w *ledgerTransactions) snapshot(conn *redis.Conn) ([]string, error) {
	found, doc, err := w.Read(conn)
	return append(found, doc), err
}

// ledgerDeaths lets items die in a container that logs their deaths.
type ledgerDeaths struct {
	t      *testing.T
	ctx    context.Context
	number int
	r      *rand.Rand

	counter int
	sent    map[string]*ledger.Dying
	judged  int
}

func (w *ledgerDeaths) resync(c *redis.Client) error {
	return c.Do(w.ctx, "DOC.COUNT", ledger.DyingName).Err()
}

func (w *ledgerDeaths) Step(c *redis.Client) (failure error) {
	pipe := c.Pipeline()
	pipe.Do(w.ctx, "SELECT", ledger.DyingName)
	var ids []string
	var lives []int64
	now := time.Now().UnixMilli()
	for range drill.Pick(5, 5, 20) {
		w.counter++
		id := fmt.Sprintf("w%d-%d", w.number, w.counter)
		ids, lives = append(ids, id), append(lives, 1+w.r.Int64N(500))
		pipe.Do(w.ctx, "SET", id, id, "PX", lives[len(lives)-1])
		w.sent[id] = &ledger.Dying{From: now + lives[len(lives)-1] - 1 - clockSlack.Milliseconds()}
	}
	replies, _ := pipe.Exec(w.ctx) // each reply is looked at
	if err := replies[0].Err(); err != nil {
		return err // the items are in another container, or nowhere
	}
	after := time.Now().UnixMilli()
	for i, id := range ids {
		err := replies[i+1].Err()
		switch {
		case err == nil:
			w.sent[id].To = after + lives[i] + 1 + clockSlack.Milliseconds()
		case harness.Temporary(err):
			failure = err
		default:
			w.t.Errorf("%v is refused: %v", replies[i+1].Args(), err)
		}
	}
	return failure
}

// entries returns the log, id and moment of each entry of this worker.
func (w *ledgerDeaths) entries(c interface {
	XRangeN(ctx context.Context, stream, start, stop string, count int64) *redis.XMessageSliceCmd
}) (list []redis.XMessage, err error) {
	for last := "-"; ; {
		page, err := c.XRangeN(w.ctx, ledger.DyingStream, last, "+", 10_000).Result()
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			last = "(" + e.ID
			if strings.HasPrefix(ledger.Field(e, "id"), fmt.Sprintf("w%d-", w.number)) {
				list = append(list, e)
			}
		}
		if len(page) < 10_000 {
			return list, nil
		}
	}
}

// judge waits until all that was acknowledged is dead and logged, and compares the log with the ledger.
func (w *ledgerDeaths) judge(c *redis.Client) error {
	w.t.Helper()
	var failure error
	judged, missing, living, fault := 0, 0, int64(0), ""
	harness.WaitFor(w.t, "all deaths", func() bool {
		list, err := w.entries(c)
		if err == nil {
			missing, fault = w.compare(list)
			living, err = c.Do(w.ctx, "DOC.COUNT", ledger.DyingName).Int64()
		}
		if failure = err; err != nil {
			return true
		}
		judged = len(list)
		return missing+int(living) == 0
	}, func() string {
		return fmt.Sprintf("of %d deaths %d are missing, and %d items live%s", len(w.sent), missing, living, fault)
	})
	w.judged += judged
	if failure == nil && fault != "" {
		w.t.Errorf("the log of deaths is wrong%s", fault)
	}
	return failure
}

// compare returns how many acknowledged items are not in the log, and what else is wrong with it.
func (w *ledgerDeaths) compare(list []redis.XMessage) (missing int, fault string) {
	logged, etags := make(map[string]bool), make(map[string]bool)
	for _, e := range list {
		id, etag := ledger.Field(e, "id"), ledger.Field(e, "etag")
		if logged[id] || etags[etag] {
			fault += ", twice: " + id
		}
		logged[id], etags[etag] = true, true
		at, err := strconv.ParseInt(ledger.Field(e, "at"), 10, 64)
		if d := w.sent[id]; err != nil || d == nil {
			fault += fmt.Sprintf(", never sent: %+v", e)
		} else if at < d.From || drill.On() && d.To != 0 && at > d.To { // a leader that is elected late kills late
			fault += fmt.Sprintf(", %s died at %d, not between %d and %d", id, at, d.From, d.To)
		}
	}
	for id, d := range w.sent {
		if d.To != 0 && !logged[id] {
			missing++
		}
	}
	return missing, fault
}

func (w *ledgerDeaths) snapshot(conn *redis.Conn) (list []string, err error) {
	entries, err := w.entries(conn)
	for _, e := range entries {
		list = append(list, fmt.Sprint(e.ID, " ", e.Values))
	}
	return list, err
}
