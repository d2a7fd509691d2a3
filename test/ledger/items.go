package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"mayfly/test/harness"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// unit is something that is written atomically by one worker: a key, a document, several keys that
// are always written together, or a container with all it holds.
type unit struct {
	Name string
	// Read asks for the unit's state; the function it returns gives it when the answers are there.
	Read func(pipe redis.Pipeliner) (state func() (string, error))
	// may is what the unit may be: what was acknowledged last, then what has been asked for since.
	may []*unitState
	// Ends is the time in ms at which the unit ends, as Read has found it. It is compared with that of a
	// state which has one.
	Ends int64
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

// Settle compares what the unit was, between two moments, with what it may be. It goes on from there.
func (u *unit) Settle(text string, from, to time.Time) error {
	for _, s := range slices.Backward(u.may) {
		gone := text == "" && (s.volatile || !s.dies.IsZero() && !to.Before(s.dies))
		if !gone && (text != s.text || text != "" && !s.dead.IsZero() && from.After(s.dead) || text != "" && u.Ends < s.ends) {
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
	return fmt.Errorf("%s is %.200q (ends %d), may be %s", u.Name, text, u.Ends, strings.Join(may, " or "))
}

// CrashWorker is a client with its ledger.
type CrashWorker struct {
	T            *testing.T
	Ctx          context.Context
	r            *rand.Rand
	Units        []*unit
	writers      []func() crashWrite // one a unit
	depth        int                 // most commands of a pipeline
	protocol     int
	counter      int // makes values different
	Acknowledged int // commands
	Faded        int // documents seen dead by a default
	Touched      int // acknowledged touches of large bodies

	// Cluster: an error of a cluster, after which the units are read anew, fails no test. Then a pipeline has
	// at most one command of each unit, since each may have been carried out or not.
	Cluster bool
	// Slack is how far the server's clock may be from the machine's.
	Slack time.Duration
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

func NewCrashWorker(t *testing.T, number int, r *rand.Rand) *CrashWorker {
	w := &CrashWorker{T: t, Ctx: t.Context(), r: r, depth: 1 << (2 * (number % 5)), protocol: 2 + number%2}
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

func (w *CrashWorker) add(u *unit, write func() crashWrite) {
	u.may = []*unitState{{}}
	w.Units = append(w.Units, u)
	w.writers = append(w.writers, write)
}

// Work writes until the server is gone. It tells how many more commands were acknowledged.
func (w *CrashWorker) Work(port string, acknowledged func(n int)) {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, Protocol: w.protocol, MaxRetries: -1, ReadTimeout: harness.Patience})
	defer c.Close()
	for before, err := w.Acknowledged, error(nil); err == nil; before = w.Acknowledged {
		err = w.Step(c)
		acknowledged(w.Acknowledged - before)
	}
}

// Step sends one pipeline. It returns the error of the cluster or of the connection after which it is not
// known what was carried out.
func (w *CrashWorker) Step(c *redis.Client) (failure error) {
	pipe := c.Pipeline()
	var writes []crashWrite
	sent := time.Now()
	drawn := make(map[int]bool)
	for range 1 + w.r.IntN(w.depth) {
		n := w.r.IntN(len(w.writers))
		if w.Cluster && drawn[n] {
			continue
		}
		drawn[n] = true
		write := w.writers[n]()
		if write.px > 0 {
			write.next.dies = sent.Add(write.px - time.Millisecond - w.Slack) // the server's clock has whole milliseconds
		}
		if write.next != nil {
			write.unit.may = append(write.unit.may, write.next)
		}
		pipe.Do(w.Ctx, write.args...)
		writes = append(writes, write)
	}
	replies, _ := pipe.Exec(w.Ctx) // each reply is looked at
	acknowledged := time.Now()
	for i, write := range writes {
		err := replies[i].Err()
		var said redis.Error
		switch {
		case write.seen != nil && (err == nil || errors.Is(err, redis.Nil)):
			w.see(write, replies[i].(*redis.Cmd))
		case err == nil:
			if write.px > 0 {
				write.next.dead = acknowledged.Add(write.px + time.Millisecond + w.Slack)
			}
			w.Acknowledged++
			if write.touch {
				w.Touched++
			}
			if write.next != nil {
				write.unit.acknowledge(write.next)
			}
		case w.Cluster && harness.Temporary(err):
			failure = err
		case errors.As(err, &said):
			w.T.Errorf("%.200q is refused: %v", fmt.Sprint(write.args), err)
		default:
			return err // none of the following has been answered either
		}
	}
	return failure
}

// see takes note of what has been read of a unit.
func (w *CrashWorker) see(write crashWrite, reply *redis.Cmd) {
	w.Acknowledged++
	text, err := NilIsEmpty(reply.Text())
	switch s := write.seen; {
	case err != nil || text != "" && text != s.text:
		w.T.Errorf("%s is %.200q (%v), was %.200q", write.unit.Name, text, err, s.text)
	case text == "" && s.text != "":
		*s = unitState{} // from now on it must not be there
		w.Faded++
	}
}

// value makes a value that was never written before. Most are small, some large.
func (w *CrashWorker) value() string {
	w.counter++
	size := w.r.IntN(100)
	if w.r.IntN(50) == 0 {
		size = w.r.IntN(60_000)
	}
	return fmt.Sprintf("%d.%s", w.counter, strings.Repeat("v", size))
}

// largeValue makes a value so large that a touch journals no body.
func (w *CrashWorker) largeValue() string {
	return w.value() + strings.Repeat("w", 4<<10+w.r.IntN(4<<10))
}

// NilIsEmpty turns the absence of a value into an empty text.
func NilIsEmpty(text string, err error) (string, error) {
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return text, err
}

// addKey adds a plain key; its state is its value and its own end.
func (w *CrashWorker) addKey(key string) {
	u := &unit{Name: key, Read: func(pipe redis.Pipeliner) func() (string, error) {
		value, end := pipe.Get(w.Ctx, key), pipe.Do(w.Ctx, "PEXPIRETIME", key)
		return func() (string, error) {
			text, err := NilIsEmpty(value.Result())
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
func (w *CrashWorker) addCounter(key string) {
	u := &unit{Name: key, Read: func(pipe redis.Pipeliner) func() (string, error) {
		value := pipe.Get(w.Ctx, key)
		return func() (string, error) { return NilIsEmpty(value.Result()) }
	}}
	count := 0
	w.add(u, func() crashWrite {
		if u.last().text == "" {
			count = 0
		} else if _, err := fmt.Sscan(u.last().text, &count); err != nil {
			w.T.Error(err)
		}
		return crashWrite{args: []any{"INCR", key}, unit: u, next: &unitState{text: fmt.Sprint(count + 1)}}
	})
}

// addBriefKey adds a plain key that dies by itself within half a second.
func (w *CrashWorker) addBriefKey(key string) {
	u := &unit{Name: key, Read: func(pipe redis.Pipeliner) func() (string, error) {
		value := pipe.Get(w.Ctx, key)
		return func() (string, error) { return NilIsEmpty(value.Result()) }
	}}
	w.add(u, func() crashWrite {
		value, px := w.value(), time.Duration(1+w.r.IntN(500))*time.Millisecond
		return crashWrite{args: []any{"SET", key, value, "PX", px.Milliseconds()}, unit: u, next: &unitState{text: value}, px: px}
	})
}

// addFamily adds keys of different partitions that are written and deleted by one command.
func (w *CrashWorker) addFamily(name string) {
	keys := make([]string, 5)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s-%d", name, i)
	}
	u := &unit{Name: name, Read: func(pipe redis.Pipeliner) func() (string, error) {
		values := pipe.MGet(w.Ctx, keys...)
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
func (w *CrashWorker) addDocument(id string) {
	u := &unit{Name: id, Read: func(pipe redis.Pipeliner) func() (string, error) {
		doc := pipe.Do(w.Ctx, "DOC.GET", "drill", id)
		return func() (string, error) { return NilIsEmpty(doc.Text()) }
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

// addTouched adds a large document in the container drill, whose clock is restarted: DOC.TOUCH, and
// DOC.SETTTL with the ttl that it has.
func (w *CrashWorker) addTouched(id string) {
	u := &unit{Name: id}
	u.Read = func(pipe redis.Pipeliner) func() (string, error) {
		doc, ends := pipe.Do(w.Ctx, "DOC.GET", "drill", id), pipe.Do(w.Ctx, "DOC.PEXPIRETIME", "drill", id)
		return func() (text string, err error) {
			if text, err = NilIsEmpty(doc.Text()); err == nil {
				u.Ends, err = ends.Int64()
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

// addRooted adds a document whose root is a number or an array. Commands and scripts make it and change it in
// place, so a write that is replayed twice shows.
func (w *CrashWorker) addRooted(key string) {
	u := &unit{Name: key, Read: func(pipe redis.Pipeliner) func() (string, error) {
		doc := pipe.Do(w.Ctx, "JSON.GET", key)
		return func() (string, error) { return NilIsEmpty(doc.Text()) }
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
func (w *CrashWorker) addIndex(paths []any) {
	listed := fmt.Sprint(paths)
	u := &unit{Name: "the index " + listed, Read: func(pipe redis.Pipeliner) func() (string, error) {
		list := pipe.Do(w.Ctx, "INDEX.LIST", "drill")
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

// addFading adds a document in the container fading, whose default changes to and fro between a
// second and none. It may be gone whenever it is read, and must then never come back.
func (w *CrashWorker) addFading(id string) {
	u := &unit{Name: id, Read: func(pipe redis.Pipeliner) func() (string, error) {
		doc := pipe.Do(w.Ctx, "DOC.GET", "fading", id)
		return func() (string, error) { return NilIsEmpty(doc.Text()) }
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
func (w *CrashWorker) addContainer(name string) {
	u := &unit{Name: name, Read: func(pipe redis.Pipeliner) func() (string, error) {
		described := redis.NewMapStringInterfaceCmd(w.Ctx, "CONTAINER.GET", name)
		_ = pipe.Process(w.Ctx, described) // queues it
		scanned := pipe.Do(w.Ctx, "DOC.SCAN", name, 0, "COUNT", 1000, "WITHDOCS")
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
