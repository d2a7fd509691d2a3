package crash

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"mayfly/test/harness"
	"mayfly/test/ledger"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	crashKills = flag.Int("kills", 5, "how many times TestCrash kills the server")
	crashSeed  = flag.Uint64("crash-seed", 0, "seed of TestCrash; 0 for a random one")
)

// TestCrash kills the server again and again while clients write, each keeping a ledger of what was acknowledged, and
// while it makes checkpoints, compacts its files, purges, and starts. After each restart every acknowledged write is
// there, every other one entirely or not at all, and nothing that was deleted or seen dead is back. Large bodies are
// touched, which journals only a header, and queries find by an index what a scan finds.
//
// The long form, and a repetition (the moments of the kills remain the machine's):
//
//	go test -run 'TestCrash$' -timeout 0 -kills 1000
//	go test -run 'TestCrash$' -crash-seed 42
func TestCrash(t *testing.T) {
	seed := *crashSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(t.TempDir(), "data")
	var workers []*ledger.CrashWorker
	for n := range 6 {
		workers = append(workers, ledger.NewCrashWorker(t, n, rand.New(rand.NewPCG(seed, uint64(n+1)))))
	}
	starting, compacting := 0, 0 // kills
	for kill := range *crashKills {
		p := harness.Start(t, dir, "--appendfsync", [...]string{"everysec", "always", "no"}[r.IntN(3)],
			"--active-expire-effort", "10", "--auto-compact-min-size", "0", "--auto-compact-percentage", "10", "--undo-window", "3600")
		c := p.Client()
		for _, container := range []string{"drill", "fading"} {
			if err := c.Do(t.Context(), "CONTAINER.SET", container, "TTL", "-1").Err(); err != nil {
				t.Fatal(err)
			}
		}
		verify(t, c, workers)
		verifyIndex(t, c, kill)
		if t.Failed() {
			keepData(t, dir, kill)
			return
		}
		var wg sync.WaitGroup
		for _, w := range workers {
			wg.Go(func() { w.Work(p.Port) })
		}
		wg.Go(func() { foldAndCompact(t, p.Port) })
		time.Sleep(time.Duration(50+r.IntN(350)) * time.Millisecond) // under load
		p.Signal(syscall.SIGKILL)
		p.Wait()
		wg.Wait()
		compacting += matching(t, dir, "*.db.tmp")
		for r.IntN(3) == 0 {
			killWhileStarting(t, dir, time.Duration(r.IntN(40))*time.Millisecond)
			starting++
		}
	}
	c := harness.Start(t, dir).Client()
	verify(t, c, workers)
	verifyIndex(t, c, *crashKills)
	if t.Failed() {
		keepData(t, dir, *crashKills)
	}
	writes, faded, touched := 0, 0, 0
	for _, w := range workers {
		writes += w.Acknowledged
		faded += w.Faded
		touched += w.Touched
	}
	t.Logf("%d commands were acknowledged, %d of them touches of large bodies; %d documents seen dead by a default", writes, touched, faded)
	t.Logf("%d kills under load, %d of them during a compaction, and %d while starting; ends cut off: %d of journals, %d of stores",
		*crashKills, compacting, starting, matching(t, dir, "journal-*.torn-*"), matching(t, dir, "[cp]*.torn-*"))
	if writes < 100**crashKills {
		t.Errorf("%d commands in %d rounds test nothing", writes, *crashKills)
	}
}

// matching counts the files of a folder whose names match a pattern.
func matching(t *testing.T, dir, pattern string) int {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Error(err)
	}
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

// killWhileStarting starts the server and kills it while it loads its data, or soon afterwards.
func killWhileStarting(t *testing.T, dir string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(harness.Binary, "--port", harness.FreePort(t), "--dir", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(after)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

// keepData puts the data folder where it outlives the test.
func keepData(t *testing.T, dir string, kills int) {
	kept, err := os.MkdirTemp("", "mayfly-crash-")
	if err == nil {
		err = os.CopyFS(filepath.Join(kept, "data"), os.DirFS(dir))
	}
	t.Logf("after %d kills; the data, as the restart has left them, are in %s (%v)", kills, kept, err)
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
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// verifyIndex checks that an index over ttl finds the documents that a scan finds. It creates the index at first.
func verifyIndex(t *testing.T, c *redis.Client, kills int) {
	t.Helper()
	if err := c.Do(t.Context(), "INDEX.CREATE", "drill", "/ttl").Err(); (err == nil) != (kills == 0) {
		t.Errorf("after %d kills INDEX.CREATE replies %v", kills, err)
	}
	const query = "WHERE ttl >= 10500"
	want := make(map[string]string)
	for cursor, more := any("0"), true; more; more = cursor != "0" {
		page, err := c.Do(t.Context(), "DOC.SCAN", "drill", cursor, "COUNT", 1000, "WITHDOCS").Slice()
		if err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
		plan = reply.(map[any]any)["plan"]
		return plan == "index"
	})
	got := make(map[string]string)
	for cursor, more := any("0"), true; more; more = cursor != "0" {
		page, err := c.Do(t.Context(), "DOC.QUERY", "drill", query, "COUNT", 1000, "CURSOR", cursor, "WITHIDS").Slice()
		if err != nil {
			t.Fatal(err)
		}
		cursor = page[0]
		for pair := range slices.Chunk(page[1].([]any), 2) {
			got[pair[0].(string)] = pair[1].(string)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("after %d kills the index finds %d documents, a scan %d, or others", kills, len(got), len(want))
	}
}
