package commands

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"mayfly/commands/access"
	"mayfly/commands/admin"
	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/eviction"
	"mayfly/redisfmt"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

// harness is an engine on a keyspace of its own, with a clock that the test moves and sessions by number.
// At the end of the test the keyspace is reopened and must hold the same items.
type harness struct {
	t         *testing.T
	disk      *vfstest.Faulty // in memory
	dir       string
	full      atomic.Bool // no write to the disk succeeds
	stepped   bool        // clients move the clock; set before open
	clock     *clock.Manual
	host      *testHost
	engine    *engine.Engine
	sessions  map[int]*engine.Session
	graceOver func()         // disconnects the clients of a deposed leader
	log       *fakeLog       // of a node of a cluster; nil: none
	last      engine.Outcome // of do

	arguments []byte // of the command before, until the next
	running   bool   // do is called within a command otherwise
}

// testStart is the first time of a harness's clock: 2026-01-01 00:00:00 UTC in ms.
const testStart = 1767225600000

func newHarness(t *testing.T) *harness {
	return newHarnessOn(t, vfstest.NewMemory(), vfstest.Dir+"/mayfly")
}

// newHarnessOn returns a harness whose data folder is in a file system.
func newHarnessOn(t *testing.T, fsys vfs.FS, dir string) *harness {
	w := &harness{
		t:     t,
		dir:   dir,
		clock: clock.NewManual(testStart),
		host: &testHost{users: access.NewUsers(engine.Catalogue), options: map[string]string{
			"requirepass":            "",
			"max-value-size":         strconv.Itoa(16 << 20),
			"notify-keyspace-events": "",

			"slowlog-log-slower-than":   "-1",
			"slowlog-max-len":           "128",
			"latency-monitor-threshold": "0",
			"undo-window":               "auto",
			"maxmemory":                 "0",
			"maxmemory-policy":          eviction.None.String(),
		}},
	}
	w.disk = &vfstest.Faulty{FS: fsys, OnWrite: func(f vfs.File, _ []byte, _ int64) error {
		if w.full.Load() {
			return &fs.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
		}
		return nil
	}}
	w.open()
	t.Cleanup(w.finish)
	return w
}

func (w *harness) open() {
	w.t.Helper()
	w.engine = &engine.Engine{Host: w.host, Log: zerolog.New(zerolog.NewTestWriter(w.t))}
	if w.stepped {
		w.engine.Clock = w.clock
	}
	w.engine.Scripts.LeastHard = time.Hour // a busy machine ends no script of a test
	w.engine.Auth.Clock = w.clock.Now
	w.engine.SetEncodings(redisfmt.DefaultEncodings)
	w.engine.Auth.After = func(_ time.Duration, f func()) { f() }
	w.engine.Leadership.After = func(_ time.Duration, f func()) { w.graceOver = f }
	broker := &w.engine.Broker
	w.host.engine = w.engine
	options := keyspace.Options{
		FS: w.disk, Dir: w.dir, Partitions: 4, Clock: w.clock, NoPurge: true, OnDeath: broker.OnDeath, OnShed: broker.OnShed, DeathsHeard: broker.DeathsHeard,
		OnLogged: w.engine.Waiters.Signal, OnTold: broker.OnTold, Caches: broker.Caches, Stepped: w.stepped,
	}
	if w.log != nil {
		options.Replicator = w.log
	}
	ks, err := keyspace.Open(options)
	drill.Check(w.t, err)
	w.engine.SetKeyspace(ks)
	for name, value := range w.host.options {
		drill.Check(w.t, w.host.ConfigSet([][2]string{{name, value}}))
	}
	w.sessions = map[int]*engine.Session{}
	w.host.sessions = func() []*engine.Session {
		return slices.SortedFunc(maps.Values(w.sessions), func(a, b *engine.Session) int { return int(a.ID - b.ID) })
	}
}

// restart closes the keyspace and reopens it, with new sessions.
func (w *harness) restart() {
	w.t.Helper()
	drill.Check(w.t, w.engine.Keyspace().Close())
	w.open()
}

// finish checks the keyspace's invariants, and that a restart changes nothing.
func (w *harness) finish() {
	if w.engine.Keyspace() == nil {
		return // it could not be opened
	}
	before := w.dump()
	w.check()
	w.restart()
	w.check()
	after := w.dump()
	if !slices.Equal(before, after) {
		w.t.Errorf("reopening the keyspace changed it\nbefore: %q\nafter:  %q", before, after)
	}
	drill.Report(w.t, w.engine.Keyspace().Close())
}

func (w *harness) check() {
	w.t.Helper()
	drill.Report(w.t, w.engine.Keyspace().Check())
}

// dump describes all living items, sorted.
func (w *harness) dump() []string {
	var tx keyspace.Tx
	w.engine.Keyspace().BeginSweep(&tx)
	defer tx.Close()
	var all []string
	for _, c := range tx.Containers() {
		items := map[string]string{}
		for cursor := uint64(0); ; {
			cursor = tx.Scan(c, cursor, 100, func(id string, it keyspace.Item) {
				items[id] = fmt.Sprintf("%s/%s %c %s ts=%d own=%d v=%d", c.Name(), id, it.Kind, it.Body, it.TS, it.ExpireAt, it.Version)
			})
			if cursor == 0 {
				break
			}
		}
		all = append(all, fmt.Sprintf("%s %+v", c.Name(), *c.Policy()))
		all = append(all, slices.Sorted(maps.Values(items))...)
		if n := tx.Count(c); n != len(items) {
			w.t.Errorf("container %s counts %d items but lists %d", c.Name(), n, len(items))
		}
	}
	return all
}

// session returns the session with a number; it connects a new one.
func (w *harness) session(n int) *engine.Session {
	s := w.sessions[n]
	if s == nil {
		s = engine.NewSession(int64(n), fmt.Sprintf("127.0.0.1:%d", 50000+n), "127.0.0.1:6379", w.clock.Now())
		s.ExecTime = time.Hour // a busy machine ends no transaction of a test
		s.Authenticated.Store(!w.host.Users().Table().NeedsLogin())
		s.Receiver = new(inbox)
		w.sessions[n] = s
	}
	return s
}

// buffered returns arguments as views of a buffer, as those of a connection are. The next call overwrites it,
// so what a command kept without a copy changes.
func (w *harness) buffered(args []string) []string {
	buffer := []byte(strings.Join(args, ""))
	if !w.running {
		for i := range w.arguments {
			w.arguments[i] = '#'
		}
		w.arguments = buffer
	}
	list, all := make([]string, len(args)), unsafe.String(unsafe.SliceData(buffer), len(buffer))
	for i, arg := range args {
		list[i], all = all[:len(arg)], all[len(arg):]
	}
	return list
}

// mostWait is how long a command of a test waits (BLOCK).
const mostWait = 100 * time.Millisecond

// do executes a command on a session and waits for its commit.
func (w *harness) do(session int, args ...string) engine.Reply {
	w.t.Helper()
	s := w.session(session)
	args = w.buffered(args)
	defer func(running bool) { w.running = running }(w.running)
	w.running = true
	w.last = w.engine.Execute(s, args)
	if s.AuthWait != nil { // the delay is over at once
		w.last = w.engine.Execute(s, args)
	}
	for s.Wait != nil { // BLOCK
		select {
		case <-w.last.Resume:
		case <-time.After(mostWait):
			w.engine.Waiters.Unblock(s.ID, false)
		}
		w.last = w.engine.Execute(s, args)
	}
	if err := w.engine.Keyspace().Wait(w.last.LSN); err != nil {
		w.t.Fatalf("%q: %v", args, err)
	}
	s.Answered()
	return w.last.Reply
}

// expect executes a command on session 1 and compares its reply in the notation of redis-cli.
func (w *harness) expect(want string, args ...string) {
	w.t.Helper()
	if got := notation(w.do(1, args...)); got != want {
		w.t.Errorf("%.200q: got %.200s, want %.200s", args, got, want)
	}
}

// inbox keeps the messages for a session. Every message counts as committed.
type inbox struct {
	mu       sync.Mutex // protects what follows
	messages []engine.Reply
	lsns     []keyspace.LSN // of all messages so far

	onDeliver func(n int) // is told how many messages there were; nil: nobody. Set before the first
	full      func() bool // nil: it is not
}

func (b *inbox) Hold() {}

func (b *inbox) Full() bool { return b.full != nil && b.full() }

func (b *inbox) Deliver(m *engine.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages = append(b.messages, m.Reply)
	b.lsns = append(b.lsns, m.LSN)
	if b.onDeliver != nil {
		b.onDeliver(len(b.lsns))
	}
}

// take passes on the messages since the last call.
func (b *inbox) take(f func(m engine.Reply)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.messages {
		f(m)
	}
	b.messages = nil
}

// received returns the messages for a session since the last call.
func (w *harness) received(session int) []engine.Reply {
	q := &w.engine.Broker.Queue
	q.Mu.Lock()
	pushed := q.Pushed
	q.Mu.Unlock()
	q.WaitDelivered(pushed) // a goroutine delivers deaths
	b := w.session(session).Receiver.(*inbox)
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.messages
	b.messages = nil
	return list
}

// testHost is a server with a few options.
type testHost struct {
	options  map[string]string
	stopped  bool // SHUTDOWN was called
	users    *access.Users
	engine   *engine.Engine
	sessions func() []*engine.Session

	disconnected []*engine.Session
}

func (h *testHost) ConfigGet(patterns []string) [][2]string {
	var found [][2]string
	for _, name := range slices.Sorted(maps.Keys(h.options)) {
		for _, p := range patterns {
			if ok, _ := path.Match(p, name); ok {
				found = append(found, [2]string{name, h.options[name]})
				break
			}
		}
	}
	return found
}

func (h *testHost) ConfigSet(pairs [][2]string) error {
	for _, p := range pairs {
		if _, ok := h.options[p[0]]; !ok {
			return engine.Error("ERR Unknown option or number of arguments for CONFIG SET - '" + strings.ToValidUTF8(engine.Truncate(p[0]), "?") + "'")
		}
	}
	for _, p := range pairs {
		h.options[p[0]] = p[1]
		if err := h.apply(p[0], p[1]); err != nil {
			return engine.Error("ERR CONFIG SET failed (possibly related to argument '" + p[0] + "') - " + err.Error())
		}
	}
	return nil
}

// apply passes an option to the engine.
func (h *testHost) apply(name, value string) error {
	if name == "notify-keyspace-events" {
		e, err := events.Parse(value)
		h.options[name] = e.String()
		h.engine.Broker.SetEventClasses(e)
		return err
	}
	if name == "maxmemory" || name == "maxmemory-policy" {
		h.limitMemory()
		return nil
	}
	if name == "undo-window" && value == "auto" {
		h.engine.Keyspace().SetUndoWindowAuto()
		return nil
	}
	if name == "requirepass" {
		return h.users.SetDefaultPassword(value)
	}
	n, err := strconv.Atoi(value)
	switch name {
	case "slowlog-log-slower-than":
		h.engine.Slowlog.SetThreshold(n)
	case "slowlog-max-len":
		h.engine.Slowlog.SetLength(n)
	case "latency-monitor-threshold":
		h.engine.Latency.SetThreshold(time.Duration(n) * time.Millisecond)
	case "undo-window":
		return h.engine.Keyspace().SetUndoWindow(int64(n))
	default:
		return nil
	}
	return err
}

func (h *testHost) limitMemory() {
	bytes, err := strconv.ParseInt(h.options["maxmemory"], 10, 64)
	if err != nil {
		panic(err)
	}
	h.engine.SetMaxMemory(bytes)
	options := eviction.Defaults
	for options.Policy.String() != h.options["maxmemory-policy"] {
		options.Policy++
	}
	h.engine.Keyspace().SetEviction(options)
}

func (h *testHost) ConfigRewrite() error { return engine.ErrNoConfigFile }
func (h *testHost) Shutdown()            { h.stopped = true }

// setPassword sets requirepass.
func (h *testHost) setPassword(password string) {
	if err := h.ConfigSet([][2]string{{"requirepass", password}}); err != nil {
		panic(err)
	}
}

func (h *testHost) Users() *access.Users        { return h.users }
func (h *testHost) LoadUsers() error            { return engine.ErrNoUserFile }
func (h *testHost) SaveUsers() error            { return engine.ErrNoUserFile }
func (h *testHost) Sessions() []*engine.Session { return h.sessions() }

// Disconnect only notes the sessions.
func (h *testHost) Disconnect(pick func(*engine.Session) bool) int {
	killed := 0
	for _, s := range h.sessions() {
		if pick(s) {
			h.disconnected = append(h.disconnected, s)
			killed++
		}
	}
	return killed
}

func (h *testHost) MaxValueSize() int {
	n, err := strconv.Atoi(h.options["max-value-size"])
	if err != nil {
		panic(err)
	}
	return n
}

func (h *testHost) Info() engine.ServerInfo {
	return engine.ServerInfo{Version: "test", ReportedVersion: admin.RedisVersion, StartedAt: testStart, TCPPort: 6379, Connected: 1, MaxClients: 10000}
}
