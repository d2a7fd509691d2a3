package commands

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"mayfly/commands/engine"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/redisfmt"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

// queueAll opens a transaction on a session and queues commands.
func (w *harness) queueAll(session int, commands ...[]string) {
	w.t.Helper()
	if r := w.do(session, "MULTI"); r.Str != "OK" {
		w.t.Fatalf("MULTI: %s", notation(r))
	}
	for _, args := range commands {
		if r := w.do(session, args...); r.Str != "QUEUED" {
			w.t.Fatalf("%.200q: %s", args, notation(r))
		}
	}
}

// A command whose Parse panics is an error in the reply of EXEC, like any command that cannot be parsed.
// The others run. For a panic of a Run see TestPanicInATransactionRollsItBack.
func TestPanicInTransaction(t *testing.T) {
	w := newHarness(t)
	var log bytes.Buffer
	w.engine.Log = zerolog.New(&log)
	addPanics(t)
	w.queueAll(1, []string{"SET", "a", "1"}, []string{"panic-early"}, []string{"INCR", "a"})
	w.expect("1) OK\n2) "+insideFailed+"\n3) (integer) 2", "EXEC")
	w.queueAll(1, []string{"INCR", "a"}, []string{"panic-late", "b"}, []string{"INCR", "a"})
	w.expect("(error) "+string(engine.ErrExecInternal), "EXEC")
	for _, name := range []string{"panic-early", "panic-late", "engine_test.go"} {
		if !strings.Contains(log.String(), name) {
			t.Errorf("the log lacks %s", name)
		}
	}
	w.expect(`"2"`, "GET", "a")
	if got := notation(w.do(2, "DBSIZE")); got != "(integer) 1" { // the locks are free
		t.Errorf("DBSIZE of another session: %s", got)
	}
}

// Every command that may be queued runs within a transaction that holds its locks. None deadlocks, and
// each has one element of the reply.
func TestEveryCommandInTransaction(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for n, r := range engine.AllRows {
		if r.Parse == nil || r.Flags&(engine.Immediate|engine.OnlyInCluster) != 0 {
			continue
		}
		args := append(strings.Split(r.FullName, "|"), slices.Repeat([]string{"0"}, 9)...)[:max(r.Arity, -r.Arity)]
		session := n + 1
		w.do(session, "MULTI")
		w.do(session, "SET", "k", "v")
		if reply := w.do(session, args...); reply.Str != "QUEUED" {
			if r.Flags&engine.NoMulti == 0 {
				t.Errorf("%q is not queued: %s", args, notation(reply))
			}
			continue
		}
		w.do(session, "FLUSHALL")
		w.do(session, "EXISTS", "k")
		reply := w.do(session, "EXEC")
		if len(reply.Elems) != 4 || reply.Elems[1].Kind == engine.KindNone || notation(reply.Elems[3]) != "(integer) 0" {
			t.Errorf("%q: %s", args, notation(reply))
		}
	}
}

// A queue clones the arguments, which are views of a reused buffer.
func TestQueueKeepsArguments(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	buffer := []byte("SETkey1value1")
	args := make([]string, 3)
	view := func(i, from, to int) { args[i] = unsafe.String(&buffer[from], to-from) }
	view(0, 0, 3)
	view(1, 3, 7)
	view(2, 7, 13)
	w.queueAll(1, args)
	copy(buffer, "GETkey1XXXXXX")
	args[2] = ""
	if r := w.do(1, args[:2]...); r.Str != "QUEUED" {
		t.Fatal(notation(r))
	}
	copy(buffer, "XXXXXXXXXXXXX")
	clear(args)
	w.expect("1) OK\n2) \"value1\"", "EXEC")
}

// A too long id and a too large value are errors of their commands only.
func TestLimitsInTransaction(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.host.options["max-value-size"] = "10"
	long := strings.Repeat("k", keyspace.MaxIDLength+1)
	w.queueAll(1, []string{"SET", long, "v"}, []string{"SET", "k", "12345678901"}, []string{"SET", "k", "v"}, []string{"MGET", "k", long})
	w.expect("1) (error) ERR id of 65537 bytes is too long: legal are up to 65536\n"+
		"2) (error) ERR string exceeds maximum allowed size (proto-max-bulk-len)\n"+
		"3) OK\n"+
		"4) (error) ERR id of 65537 bytes is too long: legal are up to 65536", "EXEC")
	w.expect("(integer) 1", "DBSIZE")
}

// Queued commands and watched keys are bounded, and the overhead of small arguments counts. A failed
// transaction keeps nothing.
func TestQueueIsBounded(t *testing.T) {
	t.Parallel()
	drill.Slow(t) // fills a queue
	w := newHarness(t)
	w.host.options["max-value-size"] = strconv.Itoa(engine.MinQueueLimit / engine.QueueFactor)
	const tooMuch = "(error) ERR the commands of a transaction take too much memory: legal are up to 67108864 bytes"
	megabyte := strings.Repeat("x", 1<<20)
	many := slices.Repeat([]string{""}, 1<<16)
	many[0] = "MGET" // a MiB of headers
	for _, args := range [][]string{{"ECHO", megabyte}, many} {
		w.expect("OK", "MULTI")
		queued := 0
		reply := w.do(1, args...)
		for ; reply.Str == "QUEUED" && queued < 1000; reply = w.do(1, args...) {
			queued++
		}
		if got := notation(reply); !strings.HasPrefix(got, tooMuch) {
			t.Errorf("got %s", got)
		}
		if queued < 50 || queued > 64 {
			t.Errorf("%.20q: %d MiB are queued", args, queued)
		}
		tx := &w.session(1).Multi
		if tx.Size != 0 || len(tx.Commands) != 0 || cap(tx.Args) > 1<<10 {
			t.Errorf("a failed transaction keeps %d bytes, %d commands and room for %d arguments", tx.Size, len(tx.Commands), cap(tx.Args))
		}
		w.expect("QUEUED", args...)
		if tx.Size != 0 || len(tx.Commands) != 0 {
			t.Error("what will never run is kept")
		}
		w.expect("(error) EXECABORT Transaction discarded because of previous errors.", "EXEC")
	}
	const length = 60_000
	watched := 0
	for ; watched < 10_000; watched++ {
		if r := w.do(1, "WATCH", fmt.Sprintf("%0*d", length, watched)); r.Str != "OK" {
			const want = "ERR watched keys take too much memory: legal are up to 67108864 bytes"
			if !strings.HasPrefix(r.Str, want) {
				t.Error(notation(r))
			}
			break
		}
	}
	if most := 64 << 20 / length; watched < most*9/10 || watched > most {
		t.Errorf("%d keys of %d bytes are watched", watched, length)
	}
	w.expect("OK", "UNWATCH")
	w.expect("OK", "WATCH", "k")
}

// A queued command costs one allocation, for its arguments, besides the growth of the queue.
func TestQueueAllocates(t *testing.T) {
	w := newHarness(t)
	s := w.session(1)
	const commands = 100
	multi, set, discard := []string{"MULTI"}, []string{"SET", "key", "value"}, []string{"DISCARD"}
	n := testing.AllocsPerRun(20, func() {
		w.engine.Execute(s, multi)
		for range commands {
			w.engine.Execute(s, set)
		}
		w.engine.Execute(s, discard)
	})
	if n > commands+10 {
		t.Errorf("%v allocations for %d commands", n, commands)
	}
}

// A closed session releases its watches and its queue.
func TestCloseSession(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(2, "WATCH", "k", "l")
	w.queueAll(2, []string{"SET", "k", "1"})
	s := w.session(2)
	w.engine.CloseSession(s)
	if len(s.Multi.Watcher.IDs()) > 0 || s.Multi.Open || len(s.Multi.Commands) > 0 || s.Multi.WatcherSize != 0 {
		t.Errorf("left behind: %+v", &s.Multi)
	}
	w.expect("OK", "SET", "k", "2") // alerts nobody
	w.engine.CloseSession(s)        // twice does no harm
}

// Commands of a transaction share one moment, and are committed together: the LSN covers all.
func TestTransactionIsOneGroup(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	s := w.session(1)
	var sets [][]string
	for i := range 50 { // over all partitions
		sets = append(sets, []string{"SET", fmt.Sprint("k", i), "v", "PX", "1000"})
	}
	w.queueAll(1, sets...)
	before := w.last.LSN
	written := w.engine.Execute(s, []string{"EXEC"}).LSN
	if written <= before {
		t.Fatalf("LSN %d after %d", written, before)
	}
	other := w.session(2)
	w.engine.Execute(other, []string{"MULTI"})
	w.engine.Execute(other, []string{"GET", "k7"})
	if read := w.engine.Execute(other, []string{"EXEC"}).LSN; read < written {
		t.Errorf("a transaction that reads what is not committed yet waits for %d, not %d", read, written)
	}
	drill.Check(t, w.engine.Keyspace().Wait(written))
}

// TestTornTransaction cuts the journal at every byte of the last commit, as a crash may. Its transaction
// spans all partitions and creates a container. It is kept entirely or not at all.
func TestTornTransaction(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "old", "TTL", "100")
	w.expect("OK", "DOC.PUT", "old", "d", "{}")
	for i := range 8 {
		w.expect("OK", "SET", fmt.Sprint("k", i), "before")
	}
	before, nothing := journalSize(w), w.dump()

	commands := [][]string{
		{"CONTAINER.SET", "old", "TTL", "50"}, {"CONTAINER.CREATE", "new", "TTL", "5"}, {"DOC.PUT", "new", "d", `{"ttl":9}`}, {"SWAPDB", "0", "3"},
	}
	for i := range 8 {
		commands = append(commands, []string{"SET", fmt.Sprint("k", i), "after"})
	}
	w.queueAll(1, append(commands, []string{"DEL", "k3"})...)
	if r := w.do(1, "EXEC"); len(r.Elems) != 13 {
		t.Fatal(notation(r))
	}
	after, everything := journalSize(w), w.dump()
	if after == before {
		t.Fatal("the journal has not grown")
	}

	seenNothing, random, most := false, drill.Rand(t), drill.Pick[int64](400, 100, 1)
	for cut := before; cut <= after; cut += 1 + random.Int64N(most) {
		got := dumpCut(w, cut)
		switch {
		case slices.Equal(got, nothing):
			seenNothing = true
		case !slices.Equal(got, everything):
			t.Errorf("cut at %d of %d to %d: half a transaction is left: %q", cut, before, after, got)
		case cut < after:
			t.Errorf("cut at %d of %d, but all is there", cut, after)
		}
	}
	if got := dumpCut(w, after); !seenNothing || !slices.Equal(got, everything) {
		t.Errorf("uncut: %q", got)
	}
}

// newestJournal opens the newest journal of the data folder in a file system.
func (w *harness) newestJournal(fsys vfs.FS) vfs.File {
	w.t.Helper()
	entries, err := fsys.ReadDir(w.dir)
	name := ""
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "journal-") {
			name = max(name, e.Name())
		}
	}
	f, openErr := fsys.OpenFile(w.dir+"/"+name, os.O_RDWR, 0)
	drill.Check(w.t, err, openErr)
	return f
}

func journalSize(w *harness) int64 {
	w.t.Helper()
	f := w.newestJournal(w.disk)
	defer f.Close()
	info, err := f.Stat()
	drill.Check(w.t, err)
	return info.Size()
}

// dumpCut describes the living items of a copy of the data folder whose newest journal ends earlier.
func dumpCut(w *harness, end int64) []string {
	w.t.Helper()
	disk := vfstest.NewMemory()
	vfstest.Copy(w.t, w.disk, w.dir, disk, w.dir)
	f := w.newestJournal(disk)
	drill.Check(w.t, f.Truncate(end), f.Close())
	ks, err := keyspace.Open(keyspace.Options{FS: disk, Dir: w.dir, Partitions: 4, Clock: clock.NewManual(testStart), NoPurge: true})
	drill.Check(w.t, err)
	other := &harness{t: w.t, engine: engine.NewEngine(ks, nil, zerolog.Nop())}
	all := other.dump()
	other.check()
	drill.Check(w.t, ks.Close())
	return all
}

// TestTransfers moves amounts between keys in many partitions and databases, in transactions of several
// kinds. Concurrent readers always see the same sum.
func TestTransfers(t *testing.T) {
	t.Parallel()
	const accounts, start, tellers, auditors, rounds = 12, 1000, 6, 2, 300
	w := newHarness(t)
	account := func(i int) string { return fmt.Sprint("account-", i) }
	var all []string
	for i := range accounts {
		all = append(all, account(i))
		w.do(1, "SET", account(i), strconv.Itoa(start))
	}
	sessions := make([]*engine.Session, tellers+auditors)
	for i := range sessions {
		sessions[i] = w.session(i + 1)
	}
	run := func(s *engine.Session, commands ...[]string) engine.Reply {
		w.engine.Execute(s, []string{"MULTI"})
		for _, args := range commands {
			w.engine.Execute(s, args)
		}
		return w.engine.Execute(s, []string{"EXEC"}).Reply
	}
	var wg sync.WaitGroup
	for _, s := range sessions[:tellers] {
		r := drill.Rand(t)
		wg.Go(func() {
			for range rounds {
				from, to, amount := account(r.IntN(accounts)), account(r.IntN(accounts)), strconv.Itoa(r.IntN(50))
				switch r.IntN(4) {
				case 0: // read, compute, write if nobody was faster
					w.engine.Execute(s, []string{"WATCH", from, to})
					a, _ := redisfmt.ParseInt(w.engine.Execute(s, []string{"GET", from}).Reply.Str)
					b, _ := redisfmt.ParseInt(w.engine.Execute(s, []string{"GET", to}).Reply.Str)
					if from != to {
						run(s, []string{"SET", from, strconv.FormatInt(a-1, 10)}, []string{"SET", to, strconv.FormatInt(b+1, 10)})
					}
				case 1: // there and back, with a name that nobody else must see
					run(s, []string{"RENAME", from, "moving"}, []string{"DECRBY", "moving", amount},
						[]string{"RENAME", "moving", from}, []string{"INCRBY", to, amount})
				case 2: // one of the commands fails, the others run
					run(s, []string{"DECRBY", from, amount}, []string{"INCRBY", from, "x"}, []string{"INCRBY", to, amount})
				default:
					run(s, []string{"DECRBY", from, amount}, []string{"INCRBY", to, amount})
				}
			}
		})
	}
	for _, s := range sessions[tellers:] {
		gets := make([][]string, accounts)
		for i := range gets {
			gets[i] = []string{"GET", account(i)}
		}
		gets = append(gets, []string{"DBSIZE"})
		wg.Go(func() {
			for i := range rounds {
				balances := w.engine.Execute(s, append([]string{"MGET"}, all...)).Reply.Elems
				if i%2 == 0 {
					balances = run(s, gets...).Elems
					if n := balances[accounts].Int; n != accounts {
						t.Errorf("there are %d keys, not %d", n, accounts)
					}
					balances = balances[:accounts]
				}
				sum := int64(0)
				for _, b := range balances {
					n, _ := redisfmt.ParseInt(b.Str)
					sum += n
				}
				if sum != accounts*start {
					t.Errorf("the accounts hold %d together, not %d", sum, accounts*start)
				}
			}
		})
	}
	wg.Wait()
}

// TestOptimisticCounter: clients read, compute and write under WATCH. Each successful EXEC adds exactly
// one.
func TestOptimisticCounter(t *testing.T) {
	t.Parallel()
	const clients, rounds = 6, 200
	w := newHarness(t)
	w.do(1, "SET", "counter", "0")
	sessions := make([]*engine.Session, clients)
	for i := range sessions {
		sessions[i] = w.session(i + 1)
	}
	succeeded := make([]int, clients)
	var wg sync.WaitGroup
	for i, s := range sessions {
		wg.Go(func() {
			for range rounds {
				w.engine.Execute(s, []string{"WATCH", "counter"})
				n, _ := redisfmt.ParseInt(w.engine.Execute(s, []string{"GET", "counter"}).Reply.Str)
				w.engine.Execute(s, []string{"MULTI"})
				w.engine.Execute(s, []string{"SET", "counter", strconv.FormatInt(n+1, 10)})
				if w.engine.Execute(s, []string{"EXEC"}).Reply.Kind == engine.KindArray {
					succeeded[i]++
				}
			}
		})
	}
	wg.Wait()
	sum := 0
	for _, n := range succeeded {
		sum += n
	}
	if got := w.do(1, "GET", "counter").Str; got != strconv.Itoa(sum) || sum == 0 {
		t.Errorf("the counter is %s after %d successes", got, sum)
	}
}
