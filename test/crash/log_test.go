package crash

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mayfly/keyspace"
	"mayfly/test/harness"
	"mayfly/test/ledger"

	"github.com/redis/go-redis/v9"
)

var (
	deathKills = flag.Int("death-kills", 2, "how many times TestCrashOfALog kills the server")
	deathTime  = flag.Duration("death-time", 1500*time.Millisecond, "how long items die before each kill, at most")
	deathRate  = flag.Int("death-rate", 20_000, "how many items die each second, if the machine can do that")
	deathSeed  = flag.Uint64("death-seed", 0, "seed of TestCrashOfALog; 0 for a random one")
)

// TestCrashOfALog kills the server again and again while items die by the thousand and their deaths are logged, beside
// checkpoints and compactions. Each writer keeps a ledger of what was acknowledged, and a consumer one of what it has read.
// After each restart the log has every item that has died exactly once, at its moment, and every entry that was read.
//
// The long form:
//
//	go test . -run CrashOfALog -timeout 0 -death-kills 200
func TestCrashOfALog(t *testing.T) {
	seed := *deathSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := filepath.Join(t.TempDir(), "data")
	makeLog(t, dir)
	l := &logDrill{t: t, r: r, sent: make(map[string]*ledger.Dying), read: make(map[string]string)}
	died, lasted, compacting := 0, time.Duration(0), 0
	for range *deathKills {
		p := l.start(dir)
		died += l.verify(p.Client())
		if t.Failed() {
			break
		}
		began := time.Now()
		l.load(p)
		lasted += time.Since(began)
		compacting += matching(t, dir, "*.db.tmp")
	}
	if !t.Failed() {
		died += l.verify(l.start(dir).Client())
	}
	if t.Failed() {
		keepData(t, dir, *deathKills)
	}
	t.Logf("%d kills, %d of them during a compaction: %d items have died and were logged, %.0f a second of load; %d entries were read before a kill",
		*deathKills, compacting, died, float64(died)/lasted.Seconds(), l.reads)
	if died < 1000**deathKills {
		t.Errorf("%d deaths in %d rounds test nothing", died, *deathKills)
	}
}

// makeLog makes the data folder with a container that logs its deaths. Items without an end die after a second.
func makeLog(t *testing.T, dir string) {
	t.Helper()
	ks, err := keyspace.Open(keyspace.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var tx keyspace.Tx
	ks.BeginAll(&tx)
	c := tx.CreateContainer(ledger.DyingName, 1, 0)
	err = tx.SetLog(c, keyspace.LogSettings{Seconds: 1e6, MaxLen: 1e9, Bodies: true})
	if err := errors.Join(err, ks.Wait(tx.Close()), ks.Close()); err != nil {
		t.Fatal(err)
	}
}

// logDrill is the ledger of the drill. The mutex protects it while writers and the consumer work.
type logDrill struct {
	t *testing.T
	r *rand.Rand

	mu      sync.Mutex
	counter int
	sent    map[string]*ledger.Dying // all items of which the log may have the death, by id
	read    map[string]string        // ids of entries that were read, by item
	reads   int                      // entries read in all rounds
	trimmed int                      // entries that XTRIM has removed
}

// start starts the server.
func (l *logDrill) start(dir string) *harness.Process {
	l.t.Helper()
	return harness.Start(l.t, dir, "--appendfsync", [...]string{"everysec", "always", "no"}[l.r.IntN(3)],
		"--active-expire-effort", "10", "--auto-compact-min-size", "0", "--auto-compact-percentage", "10")
}

// load lets items die until it kills the server.
func (l *logDrill) load(p *harness.Process) {
	var wg sync.WaitGroup
	const writers = 4
	for n := range writers {
		r := rand.New(rand.NewPCG(l.r.Uint64(), uint64(n)))
		wg.Go(func() { l.write(p.Port, r, *deathRate/writers) })
	}
	wg.Go(func() { l.consume(p.Port) })
	wg.Go(func() { foldAndCompact(l.t, p.Port) })
	time.Sleep(*deathTime/3 + time.Duration(l.r.Int64N(int64(*deathTime*2/3))))
	p.Signal(syscall.SIGKILL)
	p.Wait()
	wg.Wait()
}

// batch is the number of items that a writer sends at once.
const dyingBatch = 200

// write puts items at a rate a second until the server is gone.
func (l *logDrill) write(port string, r *rand.Rand, rate int) {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, MaxRetries: -1, ReadTimeout: harness.Patience})
	defer c.Close()
	pause := time.NewTicker(time.Second * dyingBatch / time.Duration(rate))
	defer pause.Stop()
	for ; ; <-pause.C {
		pipe := c.Pipeline()
		pipe.Do(l.t.Context(), "SELECT", ledger.DyingName)
		var ids []string
		lives := make([]int64, dyingBatch) // ms
		l.mu.Lock()
		now := time.Now().UnixMilli()
		for i := range dyingBatch {
			l.counter++
			id := "i" + strconv.Itoa(l.counter)
			ids = append(ids, id)
			lives[i] = 1000
			switch n := r.IntN(20); {
			case n == 0:
				pipe.Do(l.t.Context(), "DOC.PUT", ledger.DyingName, id, `{"n":"`+id+`","ttl":1}`)
			case n == 1:
				pipe.Do(l.t.Context(), "DOC.PUT", ledger.DyingName, id, `{"n":"`+id+`"}`)
			default:
				lives[i] = 1 + r.Int64N(300)
				pipe.Do(l.t.Context(), "SET", id, id, "PX", lives[i])
			}
			l.sent[id] = &ledger.Dying{From: now + lives[i] - 1} // the server's clock has whole milliseconds
		}
		l.mu.Unlock()
		replies, _ := pipe.Exec(l.t.Context()) // each reply is looked at
		after := time.Now().UnixMilli()
		l.mu.Lock()
		for i, id := range ids {
			err := replies[i+1].Err()
			if err == nil {
				l.sent[id].To = after + lives[i] + 1
			} else if errors.As(err, new(redis.Error)) {
				l.t.Errorf("%v is refused: %v", replies[i+1].Args(), err)
			} else {
				l.mu.Unlock()
				return
			}
		}
		l.mu.Unlock()
	}
}

// consume reads the log from its end on until the server is gone.
func (l *logDrill) consume(port string) {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, MaxRetries: -1, ReadTimeout: harness.Patience})
	defer c.Close()
	last := "-"
	for {
		entries, err := c.XRangeN(l.t.Context(), ledger.DyingStream, last, "+", 1000).Result()
		if err != nil {
			if errors.As(err, new(redis.Error)) {
				l.t.Error(err)
			}
			return
		}
		l.mu.Lock()
		for _, e := range entries {
			l.read[ledger.Field(e, "id")] = e.ID
			last = "(" + e.ID
		}
		l.reads += len(entries)
		l.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
}

// verify waits until what was acknowledged has died and compares the log with the ledgers. It then empties them. It returns
// the number of entries.
func (l *logDrill) verify(c *redis.Client) int {
	l.t.Helper()
	ctx := l.t.Context()
	most := int64(0)
	acknowledged := 0
	for _, d := range l.sent {
		most = max(most, d.From, d.To)
		if d.To != 0 {
			acknowledged++
		}
	}
	time.Sleep(time.Until(time.UnixMilli(most + 1)))
	if living := l.settle(c, acknowledged); living != 0 {
		l.t.Errorf("%d items live", living)
	}
	logged := make(map[string]string)
	etags := make(map[string]bool)
	last, missing, twice, late := "-", 0, 0, 0
	for {
		entries, err := c.XRangeN(ctx, ledger.DyingStream, last, "+", 10_000).Result()
		if err != nil {
			l.t.Error(err)
			return 0
		}
		for _, e := range entries {
			id := ledger.Field(e, "id")
			if name := id + " " + ledger.Field(e, "etag"); logged[id] != "" || etags[name] {
				twice++
			} else {
				logged[id], etags[name] = e.ID, true
			}
			d := l.sent[id]
			at, err := strconv.ParseInt(ledger.Field(e, "at"), 10, 64)
			switch {
			case err != nil || d == nil || !strings.Contains(ledger.Field(e, "doc")+ledger.Field(e, "value"), id):
				l.t.Errorf("the log has %+v", e)
			case at < d.From || d.To != 0 && at > d.To:
				late++
			}
			last = "(" + e.ID
		}
		if len(entries) < 10_000 {
			break
		}
	}
	for id, d := range l.sent {
		if d.To != 0 && logged[id] == "" {
			missing++
		}
	}
	changed := 0
	for id, entry := range l.read {
		if logged[id] != entry {
			changed++
		}
	}
	if missing+twice+late+changed > 0 {
		l.t.Errorf("of %d entries for %d acknowledged items %d are missing, %d there twice, %d of a wrong moment, %d not as they were read",
			len(logged), acknowledged, missing, twice, late, changed)
	}
	l.checkState(ctx, c, len(logged))
	clear(l.sent)
	clear(l.read)
	return len(logged)
}

// settle waits until the log has as many entries as there are acknowledged items, and the container has no items, dead or alive. It returns the
// number of items that live then.
func (l *logDrill) settle(c *redis.Client, acknowledged int) (living int64) {
	for deadline := time.Now().Add(harness.Patience); ; time.Sleep(20 * time.Millisecond) {
		n, err1 := c.XLen(l.t.Context(), ledger.DyingStream).Result()
		living, err2 := c.Do(l.t.Context(), "DOC.COUNT", ledger.DyingName).Int64()
		if err := errors.Join(err1, err2); err != nil {
			l.t.Error(err)
			return 0
		}
		// What was not acknowledged has died too, and may be buried later.
		buried := harness.Figure(l.t, c, "oldest_dead_ms") == 0
		if n >= int64(acknowledged) && living == 0 && buried || time.Now().After(deadline) {
			return living
		}
	}
}

// checkState compares what XINFO knows of entries that are gone, and removes those that are there.
func (l *logDrill) checkState(ctx context.Context, c *redis.Client, n int) {
	l.t.Helper()
	for range 2 {
		info, err := c.Do(ctx, "XINFO", "STREAM", ledger.DyingStream).Result()
		if err != nil {
			l.t.Error(err)
			return
		}
		state := make(map[string]string)
		switch info := info.(type) {
		case map[any]any:
			for key, value := range maps.All(info) {
				state[fmt.Sprint(key)] = fmt.Sprint(value)
			}
		case []any:
			for i := 0; i+1 < len(info); i += 2 {
				state[fmt.Sprint(info[i])] = fmt.Sprint(info[i+1])
			}
		}
		if state["length"] != fmt.Sprint(n) || state["entries-added"] != fmt.Sprint(l.trimmed+n) {
			l.t.Errorf("%d entries, %d removed before; XINFO says %s of %s", n, l.trimmed, state["length"], state["entries-added"])
		}
		removed, err := c.XTrimMaxLen(ctx, ledger.DyingStream, 0).Result()
		if err != nil || removed != int64(n) {
			l.t.Errorf("XTRIM has removed %d of %d entries: %v", removed, n, err)
		}
		l.trimmed, n = l.trimmed+n, 0
	}
}
