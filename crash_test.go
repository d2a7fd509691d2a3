package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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
	var workers []*crashWorker
	for n := range 6 {
		workers = append(workers, newCrashWorker(t, n, rand.New(rand.NewPCG(seed, uint64(n+1)))))
	}
	starting, compacting := 0, 0 // kills
	for kill := range *crashKills {
		p := start(t, dir, "--appendfsync", [...]string{"everysec", "always", "no"}[r.IntN(3)],
			"--active-expire-effort", "10", "--auto-compact-min-size", "0", "--auto-compact-percentage", "10", "--undo-window", "3600")
		c := p.client()
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
			wg.Go(func() { w.work(p.port) })
		}
		wg.Go(func() { foldAndCompact(t, p.port) })
		time.Sleep(time.Duration(50+r.IntN(350)) * time.Millisecond) // under load
		p.signal(syscall.SIGKILL)
		p.wait()
		wg.Wait()
		compacting += matching(t, dir, "*.db.tmp")
		for r.IntN(3) == 0 {
			killWhileStarting(t, dir, time.Duration(r.IntN(40))*time.Millisecond)
			starting++
		}
	}
	c := start(t, dir).client()
	verify(t, c, workers)
	verifyIndex(t, c, *crashKills)
	if t.Failed() {
		keepData(t, dir, *crashKills)
	}
	writes, faded, touched := 0, 0, 0
	for _, w := range workers {
		writes += w.acknowledged
		faded += w.faded
		touched += w.touched
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
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, MaxRetries: -1, ReadTimeout: patience})
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
	cmd := exec.Command(binary, "--port", freePort(t), "--dir", dir)
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

// unit is something that is written atomically by one worker: a key, a document, several keys that
// are always written together, or a container with all it holds.
type unit struct {
	name string
	// read asks for the unit's state; the function it returns gives it when the answers are there.
	read func(pipe redis.Pipeliner) (state func() (string, error))
	// may is what the unit may be: what was acknowledged last, then what has been asked for since.
	may []*unitState
	// ends is the time in ms at which the unit ends, as read has found it. It is compared with that of a state which has one.
	ends int64
}

// unitState is a state of a unit.
type unitState struct {
	text string // all that can be read of it; empty if it is not there

	// What dies by itself may be gone from dies on and must be after dead; both zero otherwise. dead
	// is also zero as long as the write has not been acknowledged.
	dies, dead time.Time
	// volatile: it may be gone at any time. Once seen gone it must not come back.
	volatile bool

	// ends is the earliest time of its end, in ms; 0 if that is not known.
	ends int64
}

func (u *unit) last() *unitState { return u.may[len(u.may)-1] }

// acknowledge notes that the unit has come to a state.
func (u *unit) acknowledge(s *unitState) {
	u.may = u.may[slices.Index(u.may, s):]
}

// settle compares what the unit was, between two moments, with what it may be. It goes on from there.
func (u *unit) settle(text string, from, to time.Time) error {
	for _, s := range slices.Backward(u.may) {
		gone := text == "" && (s.volatile || !s.dies.IsZero() && !to.Before(s.dies))
		if !gone && (text != s.text || text != "" && !s.dead.IsZero() && from.After(s.dead) || text != "" && u.ends < s.ends) {
			continue
		}
		if gone {
			s = &unitState{}
		}
		u.may = []*unitState{s}
		return nil
	}
	var may []string
	for _, s := range u.may {
		may = append(may, fmt.Sprintf("%.200q (dies %v, dead %v, ends not before %d)", s.text, s.dies, s.dead, s.ends))
	}
	return fmt.Errorf("%s is %.200q (ends %d), may be %s", u.name, text, u.ends, strings.Join(may, " or "))
}

// verify reads all units after a restart.
func verify(t *testing.T, c *redis.Client, workers []*crashWorker) {
	t.Helper()
	for _, w := range workers {
		from := time.Now()
		pipe := c.Pipeline()
		var states []func() (string, error)
		for _, u := range w.units {
			states = append(states, u.read(pipe))
		}
		_, _ = pipe.Exec(t.Context()) // each reply is looked at
		to := time.Now()
		for i, u := range w.units {
			text, err := states[i]()
			if err == nil {
				err = u.settle(text, from, to)
			}
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// crashWorker is a client with its ledger.
type crashWorker struct {
	t            *testing.T
	ctx          context.Context
	r            *rand.Rand
	units        []*unit
	writers      []func() crashWrite // one a unit
	depth        int                 // most commands of a pipeline
	protocol     int
	counter      int // makes values different
	acknowledged int // commands
	faded        int // documents seen dead by a default
	touched      int // acknowledged touches of large bodies

	// cluster: an error of a cluster, after which the units are read anew, fails no test. Then a pipeline has at most one
	// command of each unit, since each may have been carried out or not.
	cluster bool
	// slack is how far the server's clock may be from the machine's.
	slack time.Duration
}

// crashWrite is a command that changes a unit.
type crashWrite struct {
	args []any
	unit *unit
	next *unitState
	px   time.Duration // not 0: it makes the unit die so long after it

	// seen is set instead of next if the command only reads the unit: the state it was in.
	seen *unitState

	touch bool // of a large body: only its header is journaled
}

func newCrashWorker(t *testing.T, number int, r *rand.Rand) *crashWorker {
	w := &crashWorker{t: t, ctx: t.Context(), r: r, depth: 1 << (2 * (number % 5)), protocol: 2 + number%2}
	for n := range 30 {
		suffix := fmt.Sprintf("-%d-%d", number, n)
		w.addKey("key" + suffix)
		w.addFamily("family" + suffix)
		w.addDocument("document" + suffix)
		w.addBriefKey("brief" + suffix)
		w.addFading("fading" + suffix)
		if n < 5 {
			w.addCounter("counter" + suffix)
			w.addContainer("container" + suffix)
			w.addTouched("touched" + suffix)
			w.addRooted("rooted" + suffix)
		}
	}
	if paths := [][]any{{"/v"}, {"/ttl", "/v"}, {"/tags/[]"}}; number < len(paths) {
		w.addIndex(paths[number])
	}
	return w
}

func (w *crashWorker) add(u *unit, write func() crashWrite) {
	u.may = []*unitState{{}}
	w.units = append(w.units, u)
	w.writers = append(w.writers, write)
}

// work writes until the server is gone.
func (w *crashWorker) work(port string) {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, Protocol: w.protocol, MaxRetries: -1, ReadTimeout: patience})
	defer c.Close()
	for w.step(c) == nil {
	}
}

// step sends one pipeline. It returns the error of the cluster or of the connection after which it is not known what was
// carried out.
func (w *crashWorker) step(c *redis.Client) (failure error) {
	pipe := c.Pipeline()
	var writes []crashWrite
	sent := time.Now()
	drawn := make(map[int]bool)
	for range 1 + w.r.IntN(w.depth) {
		n := w.r.IntN(len(w.writers))
		if w.cluster && drawn[n] {
			continue
		}
		drawn[n] = true
		write := w.writers[n]()
		if write.px > 0 {
			write.next.dies = sent.Add(write.px - time.Millisecond - w.slack) // the server's clock has whole milliseconds
		}
		if write.next != nil {
			write.unit.may = append(write.unit.may, write.next)
		}
		pipe.Do(w.ctx, write.args...)
		writes = append(writes, write)
	}
	replies, _ := pipe.Exec(w.ctx) // each reply is looked at
	acknowledged := time.Now()
	for i, write := range writes {
		err := replies[i].Err()
		var said redis.Error
		switch {
		case write.seen != nil && (err == nil || errors.Is(err, redis.Nil)):
			w.see(write, replies[i].(*redis.Cmd))
		case err == nil:
			if write.px > 0 {
				write.next.dead = acknowledged.Add(write.px + time.Millisecond + w.slack)
			}
			w.acknowledged++
			if write.touch {
				w.touched++
			}
			if write.next != nil {
				write.unit.acknowledge(write.next)
			}
		case w.cluster && temporary(err):
			failure = err
		case errors.As(err, &said):
			w.t.Errorf("%.200q is refused: %v", fmt.Sprint(write.args), err)
		default:
			return err // none of the following has been answered either
		}
	}
	return failure
}

// see takes note of what has been read of a unit.
func (w *crashWorker) see(write crashWrite, reply *redis.Cmd) {
	w.acknowledged++
	text, err := nilIsEmpty(reply.Text())
	switch s := write.seen; {
	case err != nil || text != "" && text != s.text:
		w.t.Errorf("%s is %.200q (%v), was %.200q", write.unit.name, text, err, s.text)
	case text == "" && s.text != "":
		*s = unitState{} // from now on it must not be there
		w.faded++
	}
}

// value makes a value that was never written before. Most are small, some large.
func (w *crashWorker) value() string {
	w.counter++
	size := w.r.IntN(100)
	if w.r.IntN(50) == 0 {
		size = w.r.IntN(60_000)
	}
	return fmt.Sprintf("%d.%s", w.counter, strings.Repeat("v", size))
}

// largeValue makes a value so large that a touch journals no body.
func (w *crashWorker) largeValue() string {
	return w.value() + strings.Repeat("w", 4<<10+w.r.IntN(4<<10))
}

// nilIsEmpty turns the absence of a value into an empty text.
func nilIsEmpty(text string, err error) (string, error) {
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return text, err
}

// addKey adds a plain key; its state is its value and its own end.
func (w *crashWorker) addKey(key string) {
	u := &unit{name: key, read: func(pipe redis.Pipeliner) func() (string, error) {
		value, end := pipe.Get(w.ctx, key), pipe.Do(w.ctx, "PEXPIRETIME", key)
		return func() (string, error) {
			text, err := nilIsEmpty(value.Result())
			if text == "" || err != nil {
				return "", err
			}
			at, err := end.Int64()
			return keyState(text, at), err
		}
	}}
	w.add(u, func() crashWrite {
		value, _, _ := strings.Cut(u.last().text, " ends ")
		at := time.Now().Add(time.Hour).UnixMilli() + int64(w.counter)
		switch n := w.r.IntN(8); {
		case n == 0:
			return crashWrite{args: []any{"DEL", key}, unit: u, next: &unitState{}}
		case n == 1 && value != "":
			return crashWrite{args: []any{"PEXPIREAT", key, at}, unit: u, next: &unitState{text: keyState(value, at)}, touch: len(value) > 4<<10}
		case n == 2 && value != "":
			return crashWrite{args: []any{"PERSIST", key}, unit: u, next: &unitState{text: keyState(value, -1)}, touch: len(value) > 4<<10}
		case n == 3:
			value = w.largeValue()
			return crashWrite{args: []any{"SET", key, value, "PXAT", at}, unit: u, next: &unitState{text: keyState(value, at)}}
		}
		value = w.value()
		return crashWrite{args: []any{"SET", key, value}, unit: u, next: &unitState{text: keyState(value, -1)}}
	})
}

func keyState(value string, end int64) string { return fmt.Sprintf("%s ends %d", value, end) }

// addCounter adds a key that is incremented: a write that is replayed twice shows.
func (w *crashWorker) addCounter(key string) {
	u := &unit{name: key, read: func(pipe redis.Pipeliner) func() (string, error) {
		value := pipe.Get(w.ctx, key)
		return func() (string, error) { return nilIsEmpty(value.Result()) }
	}}
	count := 0
	w.add(u, func() crashWrite {
		if u.last().text == "" {
			count = 0
		} else if _, err := fmt.Sscan(u.last().text, &count); err != nil {
			w.t.Error(err)
		}
		return crashWrite{args: []any{"INCR", key}, unit: u, next: &unitState{text: fmt.Sprint(count + 1)}}
	})
}

// addBriefKey adds a plain key that dies by itself within half a second.
func (w *crashWorker) addBriefKey(key string) {
	u := &unit{name: key, read: func(pipe redis.Pipeliner) func() (string, error) {
		value := pipe.Get(w.ctx, key)
		return func() (string, error) { return nilIsEmpty(value.Result()) }
	}}
	w.add(u, func() crashWrite {
		value, px := w.value(), time.Duration(1+w.r.IntN(500))*time.Millisecond
		return crashWrite{args: []any{"SET", key, value, "PX", px.Milliseconds()}, unit: u, next: &unitState{text: value}, px: px}
	})
}

// addFamily adds keys of different partitions that are written and deleted by one command.
func (w *crashWorker) addFamily(name string) {
	keys := make([]string, 5)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s-%d", name, i)
	}
	u := &unit{name: name, read: func(pipe redis.Pipeliner) func() (string, error) {
		values := pipe.MGet(w.ctx, keys...)
		return func() (string, error) {
			list, err := values.Result()
			if err != nil {
				return "", err
			}
			for _, v := range list[1:] {
				if v != list[0] {
					return "", fmt.Errorf("%s is torn: %.200q", name, list)
				}
			}
			if list[0] == nil {
				return "", nil
			}
			return list[0].(string), nil
		}
	}}
	w.add(u, func() crashWrite {
		if w.r.IntN(4) == 0 {
			del := []any{"DEL"}
			for _, key := range keys {
				del = append(del, key)
			}
			return crashWrite{args: del, unit: u, next: &unitState{}}
		}
		value, set := w.value(), []any{"MSET"}
		for _, key := range keys {
			set = append(set, key, value)
		}
		return crashWrite{args: set, unit: u, next: &unitState{text: value}}
	})
}

// addDocument adds a document in the container drill, whose ttl changes.
func (w *crashWorker) addDocument(id string) {
	u := &unit{name: id, read: func(pipe redis.Pipeliner) func() (string, error) {
		doc := pipe.Do(w.ctx, "DOC.GET", "drill", id)
		return func() (string, error) { return nilIsEmpty(doc.Text()) }
	}}
	w.add(u, func() crashWrite {
		ttl := 10_000 + w.r.IntN(1000)
		_, rest, there := strings.Cut(u.last().text, ",")
		switch w.r.IntN(6) {
		case 0:
			return crashWrite{args: []any{"DOC.DEL", "drill", id}, unit: u, next: &unitState{}}
		case 1:
			if there {
				return crashWrite{args: []any{"DOC.SETTTL", "drill", id, ttl}, unit: u, next: &unitState{text: fmt.Sprintf(`{"ttl":%d,%s`, ttl, rest)}}
			}
		}
		doc := fmt.Sprintf(`{"ttl":%d,"v":%q}`, ttl, w.value())
		return crashWrite{args: []any{"DOC.PUT", "drill", id, doc}, unit: u, next: &unitState{text: doc}}
	})
}

// addTouched adds a large document in the container drill, whose clock is restarted: DOC.TOUCH, and DOC.SETTTL with the
// ttl that it has.
func (w *crashWorker) addTouched(id string) {
	u := &unit{name: id}
	u.read = func(pipe redis.Pipeliner) func() (string, error) {
		doc, ends := pipe.Do(w.ctx, "DOC.GET", "drill", id), pipe.Do(w.ctx, "DOC.PEXPIRETIME", "drill", id)
		return func() (text string, err error) {
			if text, err = nilIsEmpty(doc.Text()); err == nil {
				u.ends, err = ends.Int64()
			}
			return text, err
		}
	}
	const ttl = 10_000
	w.add(u, func() crashWrite {
		write := crashWrite{unit: u, next: &unitState{text: u.last().text, ends: time.Now().UnixMilli() + ttl*1000}}
		switch n := w.r.IntN(12); {
		case u.last().text == "" || n == 0:
			write.next.text = fmt.Sprintf(`{"ttl":%d,"v":%q}`, ttl, w.largeValue())
			write.args = []any{"DOC.PUT", "drill", id, write.next.text}
		case n == 1:
			write.args = []any{"DOC.DEL", "drill", id}
			write.next = &unitState{}
		case n == 2:
			write.args = []any{"DOC.SETTTL", "drill", id, ttl}
		default:
			write.args, write.touch = []any{"DOC.TOUCH", "drill", id}, true
		}
		return write
	})
}

// addRooted adds a document whose root is a number or an array. Commands and scripts make it and change it in place, so a
// write that is replayed twice shows.
func (w *crashWorker) addRooted(key string) {
	u := &unit{name: key, read: func(pipe redis.Pipeliner) func() (string, error) {
		doc := pipe.Do(w.ctx, "JSON.GET", key)
		return func() (string, error) { return nilIsEmpty(doc.Text()) }
	}}
	const script = "return redis.call(ARGV[1], KEYS[1], '$', ARGV[2])"
	w.add(u, func() crashWrite {
		w.counter++
		added, text := strconv.Itoa(w.counter), u.last().text
		name, next := "JSON.SET", added
		switch n, err := strconv.Atoi(text); {
		case text != "" && w.r.IntN(10) == 0:
			return crashWrite{args: []any{"JSON.DEL", key}, unit: u, next: &unitState{}}
		case text == "" || len(text) > 200:
			if w.r.IntN(2) == 0 {
				added = "[" + added + "]"
				next = added
			}
		case err == nil:
			name, next = "JSON.NUMINCRBY", strconv.Itoa(n+w.counter)
		default:
			name, next = "JSON.ARRAPPEND", text[:len(text)-1]+","+added+"]"
		}
		args := []any{name, key, "$", added}
		if w.r.IntN(3) == 0 {
			args = []any{"EVAL", script, 1, key, name, added}
		}
		return crashWrite{args: args, unit: u, next: &unitState{text: next}}
	})
}

// addIndex adds an index of the container drill, which is created and dropped. Its state is its paths.
func (w *crashWorker) addIndex(paths []any) {
	listed := fmt.Sprint(paths)
	u := &unit{name: "the index " + listed, read: func(pipe redis.Pipeliner) func() (string, error) {
		list := pipe.Do(w.ctx, "INDEX.LIST", "drill")
		return func() (string, error) {
			reply, err := list.Result()
			if err != nil || !strings.Contains(fmt.Sprint(reply), "paths:"+listed) {
				return "", err
			}
			return listed, nil
		}
	}}
	w.add(u, func() crashWrite {
		if u.last().text == "" {
			return crashWrite{args: append([]any{"INDEX.CREATE", "drill"}, paths...), unit: u, next: &unitState{text: listed}}
		}
		return crashWrite{args: append([]any{"INDEX.DROP", "drill"}, paths...), unit: u, next: &unitState{}}
	})
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
	waitFor(t, "the index to be ready", func() bool {
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

// addFading adds a document in the container fading, whose default changes to and fro between a
// second and none. It may be gone whenever it is read, and must then never come back.
func (w *crashWorker) addFading(id string) {
	u := &unit{name: id, read: func(pipe redis.Pipeliner) func() (string, error) {
		doc := pipe.Do(w.ctx, "DOC.GET", "fading", id)
		return func() (string, error) { return nilIsEmpty(doc.Text()) }
	}}
	w.add(u, func() crashWrite {
		switch n := w.r.IntN(60); {
		case n == 0 || len(u.may) == 1 && u.last().text == "" && n < 10:
			doc := fmt.Sprintf(`{"v":%q}`, w.value())
			return crashWrite{args: []any{"DOC.PUT", "fading", id, doc}, unit: u, next: &unitState{text: doc, volatile: true}}
		case n < 20:
			return crashWrite{args: []any{"CONTAINER.SET", "fading", "TTL", [...]string{"1", "-1"}[w.r.IntN(2)]}, unit: u}
		}
		return crashWrite{args: []any{"DOC.GET", "fading", id}, unit: u, seen: u.last()}
	})
}

// addContainer adds a container with a few documents, which is changed, dropped and made again.
func (w *crashWorker) addContainer(name string) {
	u := &unit{name: name, read: func(pipe redis.Pipeliner) func() (string, error) {
		described := redis.NewMapStringInterfaceCmd(w.ctx, "CONTAINER.GET", name)
		_ = pipe.Process(w.ctx, described) // queues it
		scanned := pipe.Do(w.ctx, "DOC.SCAN", name, 0, "COUNT", 1000, "WITHDOCS")
		return func() (string, error) {
			fields, err := described.Result()
			if errors.Is(err, redis.Nil) {
				return "", nil
			}
			page, err2 := scanned.Slice()
			if err := errors.Join(err, err2); err != nil {
				return "", err
			}
			docs := make(map[string]string)
			for pair := range slices.Chunk(page[1].([]any), 2) {
				docs[pair[0].(string)] = pair[1].(string)
			}
			return containerState(fmt.Sprint(fields["ttl"], " ", fields["ttlmode"]), docs), nil
		}
	}}
	var rule string
	docs := make(map[string]string) // as of the last state
	dropped := ""                   // the state that CONTAINER.UNDO brings back
	w.add(u, func() crashWrite {
		if u.last().text == "" {
			rule = ""
			clear(docs)
		} else if containerState(rule, docs) != u.last().text {
			rule, docs = parseContainerRecord(u.last().text)
		}
		id := fmt.Sprint(w.r.IntN(6))
		args := []any{"DOC.PUT", name, id}
		switch n := w.r.IntN(20); {
		case rule == "" && dropped != "" && n < 10:
			next := &unitState{text: dropped}
			dropped = ""
			return crashWrite{args: []any{"CONTAINER.UNDO", name}, unit: u, next: next}
		case rule == "" || n < 4:
			dropped = "" // what is made again is not the dropped one
			rule = [...]string{"off strict", "-1 lenient", fmt.Sprint(5000+w.counter, " strict")}[w.r.IntN(3)]
			ttl, mode, _ := strings.Cut(rule, " ")
			args = []any{"CONTAINER.SET", name, "TTL", ttl, "TTLMODE", mode}
		case n == 4:
			args = []any{"CONTAINER.DROP", name}
			dropped = u.last().text
			if slices.ContainsFunc(u.may, func(s *unitState) bool { return s.text == "" }) {
				dropped = "" // after a kill it may never have been there
			}
			return crashWrite{args: args, unit: u, next: &unitState{}}
		case n < 8:
			delete(docs, id)
			args = []any{"DOC.DEL", name, id}
		default:
			docs[id] = fmt.Sprintf(`{"v":%q}`, w.value())
			args = append(args, docs[id])
		}
		return crashWrite{args: args, unit: u, next: &unitState{text: containerState(rule, docs)}}
	})
}

const stateSeparator = "\n"

func containerState(rule string, docs map[string]string) string {
	parts := []string{rule}
	for _, id := range slices.Sorted(maps.Keys(docs)) {
		parts = append(parts, id, docs[id])
	}
	return strings.Join(parts, stateSeparator)
}

func parseContainerRecord(text string) (rule string, docs map[string]string) {
	parts := strings.Split(text, stateSeparator)
	docs = make(map[string]string)
	for pair := range slices.Chunk(parts[1:], 2) {
		docs[pair[0]] = pair[1]
	}
	return parts[0], docs
}
