package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/keyspace"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"mayfly/test/ledger"

	"github.com/redis/go-redis/v9"
)

// TestCrashOfALog kills the server while items die by the thousand and their deaths are logged. Each writer
// keeps a ledger of what was acknowledged, and a consumer one of what it has read. After each restart the log
// has every item that has died exactly once, at its moment, and every entry that was read.
func TestCrashOfALog(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	r := drill.Rand(t)
	l := &logDrill{t: t, sent: make(map[string]*ledger.Dying), read: make(map[string]string)}
	l.news.L = &l.mu
	k := &killing{t: t, r: r, dir: dataFolder(t), kills: drill.Pick(0, 1, 50), least: 2000, most: 8000}
	makeLog(t, k.dir)
	k.clients = func(port string, acknowledged func(int)) []func() {
		l.over = false
		list := []func(){func() { l.consume(port, acknowledged) }}
		for range 4 {
			r := rand.New(rand.NewPCG(r.Uint64(), 0))
			list = append(list, func() { l.write(port, r) })
		}
		return list
	}
	k.check = func(p *harness.Process, _ int) { l.verify(p.Client()) }
	k.run()
	t.Logf("%d items have died and were logged; %d entries were read before a kill", l.trimmed, l.reads)
}

// makeLog makes the data folder with a container that logs its deaths. Items without an end die after a
// second.
func makeLog(t *testing.T, dir string) {
	t.Helper()
	ks, err := keyspace.Open(keyspace.Options{Dir: dir})
	drill.Check(t, err)
	var tx keyspace.Tx
	ks.BeginAll(&tx)
	c := tx.CreateContainer(ledger.DyingName, 1, 0)
	err = tx.SetLog(c, keyspace.LogSettings{Seconds: 1e6, MaxLen: 1e9, Bodies: true})
	drill.Check(t, err, ks.Wait(tx.Close()), ks.Close())
}

// logDrill is the ledger of the drill. The mutex protects it while writers and the consumer work.
type logDrill struct {
	t *testing.T

	mu      sync.Mutex
	news    sync.Cond // entries were read, or the consumer has ended
	counter int
	sent    map[string]*ledger.Dying // all items of which the log may have the death, by id
	read    map[string]string        // ids of entries that were read, by item
	reads   int                      // entries read in all rounds
	over    bool                     // the consumer has ended
	trimmed int                      // entries that XTRIM has removed
}

// Items are sent in batches, as long as no more wait for their death and for the consumer.
const (
	dyingBatch  = 200
	mostWaiting = 5000
)

// write puts items until the server is gone.
func (l *logDrill) write(port string, r *rand.Rand) {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, MaxRetries: -1, ReadTimeout: harness.Patience})
	defer c.Close()
	for {
		pipe := c.Pipeline()
		pipe.Do(l.t.Context(), "SELECT", ledger.DyingName)
		var ids []string
		lives := make([]int64, dyingBatch) // ms
		l.mu.Lock()
		for len(l.sent)-len(l.read) > mostWaiting && !l.over {
			l.news.Wait()
		}
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

// consume reads the log until the server is gone. It tells how many more entries it has read.
func (l *logDrill) consume(port string, read func(n int)) {
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.over = true
		l.news.Broadcast()
	}()
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, MaxRetries: -1, ReadTimeout: harness.Patience})
	defer c.Close()
	for last := "0-0"; ; {
		streams, err := c.XRead(l.t.Context(), &redis.XReadArgs{Streams: []string{ledger.DyingStream, last}, Count: 1000}).Result()
		if err != nil {
			if errors.As(err, new(redis.Error)) {
				l.t.Error(err)
			}
			return
		}
		entries := streams[0].Messages
		l.mu.Lock()
		for _, e := range entries {
			l.read[ledger.Field(e, "id")] = e.ID
			last = e.ID
		}
		l.reads += len(entries)
		l.news.Broadcast()
		l.mu.Unlock()
		read(len(entries))
	}
}

// verify waits until what was acknowledged has died and compares the log with the ledgers. It then empties
// them.
func (l *logDrill) verify(c *redis.Client) {
	l.t.Helper()
	ctx := l.t.Context()
	acknowledged := 0
	for _, d := range l.sent {
		if d.To != 0 {
			acknowledged++
		}
	}
	l.settle(c, acknowledged)
	logged := make(map[string]string)
	etags := make(map[string]bool)
	last, missing, twice, late := "-", 0, 0, 0
	for {
		entries, err := c.XRangeN(ctx, ledger.DyingStream, last, "+", 10_000).Result()
		if err != nil {
			l.t.Error(err)
			return
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
}

// settle waits until the log has as many entries as there are acknowledged items, and the container has no
// items, dead or alive. What was not acknowledged has died too, and may be buried later.
func (l *logDrill) settle(c *redis.Client, acknowledged int) {
	l.t.Helper()
	harness.WaitFor(l.t, fmt.Sprint("the end of all items, of which ", acknowledged, " were acknowledged"), func() bool {
		n, err1 := c.XLen(l.t.Context(), ledger.DyingStream).Result()
		living, err2 := c.Do(l.t.Context(), "DOC.COUNT", ledger.DyingName).Int64()
		drill.Check(l.t, err1, err2)
		return n >= int64(acknowledged) && living == 0 && harness.Figure(l.t, c, "oldest_dead_ms") == 0
	})
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
