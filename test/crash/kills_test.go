package crash

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"mayfly/test/ledger"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// killing kills a server again and again under load, and checks after each start what is left.
type killing struct {
	t     *testing.T
	r     *rand.Rand
	dir   string // data folder
	kills int
	args  []string // of the server

	// A load is killed after so many acknowledgements.
	least, most int

	// clients returns what writes until the server is gone. Each client tells how many writes more were
	// acknowledged.
	clients func(port string, acknowledged func(n int)) []func()
	// dead, if not nil, looks at what a kill has left.
	dead func()
	// check compares what the server has after so many kills with what was acknowledged.
	check func(p *harness.Process, kills int)

	starting, compacting int // kills
}

// run kills a server under load. Checkpoints and compactions are made meanwhile; every third kill waits for a
// compaction.
func (k *killing) run() {
	k.t.Helper()
	for n := range k.kills {
		p := k.start(n)
		if k.check(p, n); k.t.Failed() {
			return
		}
		left, enough := atomic.Int64{}, make(chan struct{})
		left.Store(int64(k.least + k.r.IntN(k.most-k.least)))
		acknowledged := func(n int) {
			if now := left.Add(-int64(n)); now <= 0 && now+int64(n) > 0 {
				close(enough)
			}
		}
		var all sync.WaitGroup
		for _, client := range k.clients(p.Port, acknowledged) {
			all.Go(client)
		}
		all.Go(func() { foldAndCompact(k.t, p.Port) })
		select {
		case <-enough:
		case <-time.After(harness.Patience):
			k.t.Errorf("%d acknowledgements do not come", left.Load())
		}
		for tries := 0; n%3 == 2 && tries < 1000 && matching(k.t, k.dir, "*.db.tmp") == 0; tries++ {
			time.Sleep(100 * time.Microsecond) // the work of another process
		}
		p.Signal(syscall.SIGKILL)
		p.Wait()
		all.Wait()
		if matching(k.t, k.dir, "*.db.tmp") > 0 {
			k.compacting++
		}
		if k.dead != nil {
			k.dead()
		}
		for k.r.IntN(3) == 0 {
			killWhileStarting(k.t, k.dir, [...]string{"", listening, loaded, ready}[k.r.IntN(4)])
			k.starting++
		}
	}
	k.check(k.start(k.kills), k.kills)
	k.t.Logf("%d kills under load, %d of them during a compaction, and %d while starting; ends cut off: %d of journals, %d of stores",
		k.kills, k.compacting, k.starting, matching(k.t, k.dir, "journal-*.torn-*"), matching(k.t, k.dir, "[cp]*.torn-*"))
}

// start starts the server with each policy in turn.
func (k *killing) start(n int) *harness.Process {
	k.t.Helper()
	policy := [...]string{"everysec", "always", "no"}[n%3]
	return harness.Start(k.t, k.dir, append(k.args, "--appendfsync", policy,
		"--active-expire-effort", "10", "--auto-compact-min-size", "0", "--auto-compact-percentage", "10")...)
}

// dataFolder returns a path for data. Those of a test that fails outlive it.
func dataFolder(t *testing.T) string {
	dir := filepath.Join(t.TempDir(), "data")
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		kept, err := os.MkdirTemp("", "mayfly-crash-")
		if err == nil {
			err = os.CopyFS(filepath.Join(kept, "data"), os.DirFS(dir))
		}
		t.Logf("the data, as the last start has left them, are in %s (%v)", kept, err)
	})
	return dir
}

// TestCrash kills the server while clients write, each keeping a ledger of what was acknowledged, and while
// it makes checkpoints, compacts its files, purges, and starts. After each restart every acknowledged write
// is there, every other one entirely or not at all, and nothing that was deleted or seen dead is back. Large
// bodies are touched, which journals only a header, and queries find by an index what a scan finds.
func TestCrash(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	r := drill.Rand(t)
	var workers []*ledger.CrashWorker
	for n := range 6 {
		workers = append(workers, ledger.NewCrashWorker(t, n, rand.New(rand.NewPCG(r.Uint64(), 0))))
	}
	k := &killing{t: t, r: r, dir: dataFolder(t), kills: drill.Pick(0, 3, 300), args: []string{"--undo-window", "3600"}, least: 300, most: 4000}
	k.clients = func(port string, acknowledged func(int)) (list []func()) {
		for _, w := range workers {
			list = append(list, func() { w.Work(port, acknowledged) })
		}
		return list
	}
	k.check = func(p *harness.Process, kills int) {
		c := p.Client()
		for _, container := range []string{"drill", "fading"} {
			drill.Check(t, c.Do(t.Context(), "CONTAINER.SET", container, "TTL", "-1").Err())
		}
		verify(t, c, workers)
		verifyIndex(t, c, kills)
	}
	k.run()
	writes, faded, touched := 0, 0, 0
	for _, w := range workers {
		writes += w.Acknowledged
		faded += w.Faded
		touched += w.Touched
	}
	t.Logf("%d commands were acknowledged, %d of them touches of large bodies; %d documents seen dead by a default", writes, touched, faded)
}

// matching counts the files of a folder whose names match a pattern.
func matching(t *testing.T, dir, pattern string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	drill.Report(t, err)
	return len(found)
}

// foldAndCompact has checkpoints made and files compacted, one after the other, until the server is
// gone.
func foldAndCompact(t *testing.T, port string) {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, MaxRetries: -1, ReadTimeout: harness.Patience})
	defer c.Close()
	for n := 0; ; n++ {
		name := [...]string{"SAVE", "COMPACT", "BGSAVE"}[n%3]
		err := c.Do(t.Context(), name).Err()
		var said redis.Error
		switch {
		case err == nil:
		case !errors.As(err, &said):
			return
		case !strings.Contains(said.Error(), "in progress"):
			t.Errorf("%s: %v", name, err)
			return
		}
	}
}

// The moments at which a server that starts is killed: it says so in its log, or has written its port.
const (
	listening = "port-file"
	loaded    = "data loaded"
	ready     = "ready"
)

// killWhileStarting starts the server and kills it at a moment, at once if that is empty, unless it refuses
// to start.
func killWhileStarting(t *testing.T, dir, moment string) {
	t.Helper()
	port := filepath.Join(t.TempDir(), listening)
	cmd := exec.Command(harness.Binary, "--port", "auto", "--port-file", port, "--dir", dir)
	var log harness.LogBuffer
	cmd.Stderr = &log
	drill.Check(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	for deadline := time.Now().Add(harness.Patience); ; {
		_, err := os.Stat(port)
		if moment == listening && err == nil || strings.Contains(log.String(), moment) && moment != listening {
			break
		}
		if time.Now().After(deadline) {
			t.Errorf("the server does not get as far as %q:\n%s", moment, log.String())
			break
		}
		select {
		case <-ended:
			return
		case <-time.After(100 * time.Microsecond):
		}
	}
	_ = cmd.Process.Kill()
	<-ended
}

// verify reads all units after a restart.
func verify(t *testing.T, c *redis.Client, workers []*ledger.CrashWorker) {
	t.Helper()
	for _, w := range workers {
		from := time.Now()
		pipe := c.Pipeline()
		var states []func() (string, error)
		for _, u := range w.Units {
			states = append(states, u.Read(pipe))
		}
		_, _ = pipe.Exec(t.Context()) // each reply is looked at
		to := time.Now()
		for i, u := range w.Units {
			text, err := states[i]()
			if err == nil {
				err = u.Settle(text, from, to)
			}
			drill.Report(t, err)
		}
	}
}

// verifyIndex checks that an index over ttl finds the documents that a scan finds. It creates the index at
// first.
func verifyIndex(t *testing.T, c *redis.Client, kills int) {
	t.Helper()
	if err := c.Do(t.Context(), "INDEX.CREATE", "drill", "/ttl").Err(); (err == nil) != (kills == 0) {
		t.Errorf("after %d kills INDEX.CREATE replies %v", kills, err)
	}
	const query = "WHERE ttl >= 10500"
	want := make(map[string]string)
	for cursor, more := any("0"), true; more; more = cursor != "0" {
		page, err := c.Do(t.Context(), "DOC.SCAN", "drill", cursor, "COUNT", 1000, "WITHDOCS").Slice()
		drill.Check(t, err)
		cursor = page[0]
		for pair := range slices.Chunk(page[1].([]any), 2) {
			id, doc := pair[0].(string), pair[1].(string)
			var ttl int
			if _, err := fmt.Sscanf(doc, `{"ttl":%d,`, &ttl); err != nil {
				t.Errorf("%s is %.200q: %v", id, doc, err)
			}
			if ttl >= 10500 {
				want[id] = doc
			}
		}
	}
	var plan any
	harness.WaitFor(t, "the index to be ready", func() bool {
		reply, err := c.Do(t.Context(), "DOC.QUERY", "drill", query, "EXPLAIN").Result()
		drill.Check(t, err)
		plan = reply.(map[any]any)["plan"]
		return plan == "index"
	})
	got := make(map[string]string)
	for cursor, more := any("0"), true; more; more = cursor != "0" {
		page, err := c.Do(t.Context(), "DOC.QUERY", "drill", query, "COUNT", 1000, "CURSOR", cursor, "WITHIDS").Slice()
		drill.Check(t, err)
		cursor = page[0]
		for pair := range slices.Chunk(page[1].([]any), 2) {
			got[pair[0].(string)] = pair[1].(string)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("after %d kills the index finds %d documents, a scan %d, or others", kills, len(got), len(want))
	}
}
