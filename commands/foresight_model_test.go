package commands

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/expiry"
	"mayfly/test/drill"
)

// foreseen is a container in the model of what becomes of items: it visits every item, and removes the dead
// for good before every event.
type foreseen struct {
	def   int64 // s; 0 off, -1 on without a default
	items map[string]foreseenItem
}

type foreseenItem struct {
	ts    int64 // ms
	own   int64 // ms; its own end, expiry.Inherit or expiry.Never
	size  int64
	plain bool
}

// end returns the end of an item under a default in ms, -1 for none.
func (it foreseenItem) end(def int64) int64 {
	switch {
	case def == 0 || it.own == expiry.Never:
		return -1
	case it.own != expiry.Inherit:
		return it.own
	case def > 0:
		return it.ts + def*1000
	}
	return -1
}

func (f *foreseen) removeDead(now int64) {
	for id, it := range f.items {
		if end := it.end(f.def); end >= 0 && end <= now {
			delete(f.items, id)
		}
	}
}

// killed returns the ids that a default would kill now, the longest overdue first.
func (f *foreseen) killed(def, now int64) (ids []string) {
	for id, it := range f.items {
		if end := it.end(def); end >= 0 && end <= now {
			ids = append(ids, id)
		}
	}
	f.sort(ids, def)
	return ids
}

func (f *foreseen) sort(ids []string, def int64) {
	slices.SortFunc(ids, func(a, b string) int {
		return cmp.Or(cmp.Compare(f.items[a].end(def), f.items[b].end(def)), strings.Compare(a, b))
	})
}

// TestForesightAgainstModel plays random writes, changes of the default, rolled back transactions, restarts
// and passing time. After every step PLAN, FORECAST, DUE and EXPLAIN must agree with the model, and a guarded
// change must kill what was planned.
func TestForesightAgainstModel(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 1, 2, 200, func(t *testing.T, seed uint64) {
		t.Parallel()
		g := &foresightGame{harness: newHarness(t), t: t, rnd: rand.New(rand.NewPCG(seed, 13))}
		g.play()
	})
}

type foresightGame struct {
	*harness
	t     *testing.T
	rnd   *rand.Rand
	model map[string]*foreseen
}

func defaultText(def int64) string { return expiry.TTL(def).String() }

func (g *foresightGame) pick(of ...int64) int64 { return of[g.rnd.IntN(len(of))] }

func (g *foresightGame) play() {
	g.model = map[string]*foreseen{"c": {items: map[string]foreseenItem{}}, "d": {items: map[string]foreseenItem{}}}
	for name := range g.model {
		g.expect("OK", "CONTAINER.CREATE", name)
	}
	for range 250 {
		name := []string{"c", "d"}[g.rnd.IntN(2)]
		g.step(name)
		if g.t.Failed() {
			return
		}
		g.clock.Advance(time.Duration(g.pick(0, 0, 1, 250, 999, 1000, 3000)) * time.Millisecond)
		for _, f := range g.model {
			f.removeDead(g.clock.Now())
		}
		g.judge(name)
	}
}

// write puts an item with a random end of its own.
func (g *foresightGame) write(name, id string) {
	now, f := g.clock.Now(), g.model[name]
	it := foreseenItem{ts: now, plain: g.rnd.IntN(3) == 0}
	ttl := g.pick(0, 0, 0, -1, 1, 2, 5, 9)
	if it.plain {
		g.do(1, "DEL", id)
		args := []string{"SET", id, "value"}
		if ttl > 0 {
			ms := ttl*1000 - 400
			args, it.own = append(args, "PX", strconv.FormatInt(ms, 10)), now+ms
		}
		g.expect("OK", args...)
		if it.size = int64(len(id) + len("value")); ttl == -1 && g.do(1, "PERSIST", id).Int == 1 {
			it.own = expiry.Never
		}
	} else {
		json := "{}"
		if ttl != 0 {
			json = fmt.Sprintf(`{"ttl":%d}`, ttl)
		}
		g.do(1, "DEL", id)
		g.expect("OK", "DOC.PUT", name, id, json)
		it.size, it.own = int64(len(id)+len(json)), expiry.ExpireAt(now, expiry.TTL(ttl))
	}
	f.items[id] = it
}

func (g *foresightGame) step(name string) {
	now, f := g.clock.Now(), g.model[name]
	g.expect("OK", "SELECT", name)
	id := "i" + strconv.Itoa(g.rnd.IntN(30))
	switch g.rnd.IntN(12) {
	case 0, 1, 2, 3, 4:
		for range 1 + g.rnd.IntN(6) {
			g.write(name, "i"+strconv.Itoa(g.rnd.IntN(30)))
		}
	case 5:
		delete(f.items, id)
		g.do(1, "DEL", id)
	case 6:
		if it, ok := f.items[id]; ok && !it.plain {
			if it.own > 0 {
				it.own += now - it.ts
			}
			it.ts = now
			f.items[id] = it
			g.expect("(integer) 1", "DOC.TOUCH", name, id)
		}
	case 7, 8:
		g.change(name, g.pick(0, -1, 1, 2, 3, 4, 6))
	case 9:
		g.engine.Keyspace().PurgeOnce()
	case 10:
		switch g.rnd.IntN(4) {
		case 0:
			g.restart()
		case 3: // the dead lie where they are, dead all the same
			g.engine.Keyspace().KeepDeadUntil(now + g.pick(500, 2000, 10_000))
		case 1:
			g.expect("OK", "SWAPDB", "c", "d")
			g.model["c"].items, g.model["d"].items = g.model["d"].items, g.model["c"].items
		}
	case 11: // it takes too long and is rolled back
		g.queueAll(1, []string{"CONTAINER.SET", name, "TTL", "1"}, []string{"DOC.PUT", name, "new", "{}"}, []string{"DEL", id})
		s := g.session(1)
		was := s.ExecTime
		s.ExecTime = -time.Second
		if r := g.do(1, "EXEC"); r.Kind != engine.KindError {
			g.t.Errorf("EXEC was not refused: %s", notation(r))
		}
		s.ExecTime = was
	}
}

// change sets a default as a careful user does. What dies is what was planned, and one less is refused.
func (g *foresightGame) change(name string, def int64) {
	f, text := g.model[name], defaultText(def)
	plan := g.do(1, "CONTAINER.PLAN", name, "TTL", text)
	kills, version := field(plan, "kills").Int, field(plan, "etag").Str
	before := g.do(1, "DBSIZE").Int
	if kills > 0 {
		g.expect(fmt.Sprintf("(error) ERR TTL %s would kill more than %d items at once, see CONTAINER.PLAN %s TTL %s; nothing has changed", text, kills-1, name, text),
			"CONTAINER.SET", name, "TTL", text, "MAXKILL", strconv.FormatInt(kills-1, 10))
	}
	g.expect("OK", "CONTAINER.SET", name, "TTL", text, "MAXKILL", strconv.FormatInt(kills, 10), "IFMATCH", version)
	if after := g.do(1, "DBSIZE").Int; before-after != kills {
		g.t.Errorf("TTL %s would kill %d, and has killed %d of %d", text, kills, before-after, before)
	}
	if def != f.def {
		newest := g.do(1, "CONTAINER.HISTORY", name, "COUNT", "1").Elems[0]
		if field(newest, "kills").Int != kills || field(newest, "etag").Str == version || field(newest, "ttl").Str != text {
			g.t.Errorf("the history has %s", notation(newest))
		}
	}
	f.def = def
	f.removeDead(g.clock.Now())
}

// judge compares what the server foresees of a container with the model.
func (g *foresightGame) judge(name string) {
	now, f := g.clock.Now(), g.model[name]
	g.expect("OK", "SELECT", name)
	g.judgePlan(name, g.pick(0, -1, 1, 2, 3, 4, 6))
	g.judgeForecast(name, f.def)
	g.judgeForecast(name, g.pick(0, -1, 1, 2, 4), "TTL")
	g.judgeDue(name)
	if g.rnd.IntN(4) == 0 {
		sum := foresightSum(g.do(1, "CONTAINER.FORECAST", "*"))
		if living := int64(len(g.model["c"].items) + len(g.model["d"].items)); sum != living {
			g.t.Errorf("a forecast of all sums to %d of %d", sum, living)
		}
	}
	id := "i" + strconv.Itoa(g.rnd.IntN(30))
	e := g.do(1, "DOC.EXPLAIN", name, id)
	it, alive := f.items[id]
	if alive != (field(e, "state").Str == "alive") || alive && (field(e, "expiresat").Int != it.end(f.def) || field(e, "ts").Int != it.ts) {
		g.t.Errorf("at %d default %d item %+v: %s", now, f.def, it, notation(e))
	}
}

func (g *foresightGame) judgePlan(name string, def int64) {
	now, f := g.clock.Now(), g.model[name]
	killed := f.killed(def, now)
	var docs, keys, bytes, sooner, later, same, never, oldest, newest int64
	for _, id := range killed {
		it := f.items[id]
		if docs+keys == 0 {
			oldest, newest = it.ts, it.ts
		}
		oldest, newest = min(oldest, it.ts), max(newest, it.ts)
		bytes += it.size
		if it.plain {
			keys++
		} else {
			docs++
		}
	}
	for _, it := range f.items {
		was, is := it.end(f.def), it.end(def)
		if is >= 0 && is <= now {
			continue
		}
		if is < 0 {
			never++
		}
		switch {
		case is == was:
			same++
		case is < 0 || was >= 0 && is > was:
			later++
		default:
			sooner++
		}
	}
	sample := g.rnd.IntN(5)
	undone := int64(0)
	if def != f.def && len(f.items) > 0 {
		undone = 300
	}
	reply := g.do(1, "CONTAINER.PLAN", name, "TTL", defaultText(def), "SAMPLE", strconv.Itoa(sample))
	want := engine.Map(
		engine.Bulk("now"), engine.Integer(now), engine.Bulk("ttl"), engine.Bulk(defaultText(def)), engine.Bulk("etag"), field(reply, "etag"),
		engine.Bulk("kills"), engine.Integer(docs+keys), engine.Bulk("documents"), engine.Integer(docs), engine.Bulk("keys"), engine.Integer(keys), engine.Bulk("bytes"), engine.Integer(bytes),
		engine.Bulk("oldest"), engine.Integer(oldest), engine.Bulk("newest"), engine.Integer(newest),
		engine.Bulk("sooner"), engine.Integer(sooner), engine.Bulk("later"), engine.Integer(later), engine.Bulk("same"), engine.Integer(same), engine.Bulk("never"), engine.Integer(never),
		engine.Bulk("sample"), engine.Bulks(killed[:min(sample, len(killed))]...), engine.Bulk("undo"), engine.Integer(undone),
	)
	if docs+keys == 0 {
		want.Elems[15], want.Elems[17] = engine.Null, engine.Null
	}
	if a, b := notation(want), notation(reply); a != b {
		g.t.Errorf("at %d default %d, planned %d: the model has\n%s\nthe server\n%s", now, f.def, def, a, b)
	}
	if sum := docs + keys + sooner + later + same; sum != int64(len(f.items)) || sum != g.do(1, "DBSIZE").Int {
		g.t.Errorf("a plan sums to %d of %d", sum, len(f.items))
	}
}

// foresightSum returns the number of items in a forecast.
func foresightSum(r engine.Reply) (n int64) {
	for _, b := range field(r, "buckets").Elems {
		n += b.Elems[1].Int
	}
	for _, name := range []string{"killed", "later", "never"} {
		n += field(r, name).Elems[0].Int
	}
	return n
}

func (g *foresightGame) judgeForecast(name string, def int64, ttl ...string) {
	now, f := g.clock.Now(), g.model[name]
	every, buckets := g.pick(1, 2, 3), g.pick(1, 2, 5)
	args := []string{"CONTAINER.FORECAST", name, "EVERY", strconv.FormatInt(every, 10), "BUCKETS", strconv.FormatInt(buckets, 10)}
	if ttl != nil {
		args = append(args, "TTL", defaultText(def))
	}
	from := now / (every * 1000) * every * 1000
	type amount struct{ items, bytes int64 }
	var killed, later, never amount
	in, own := make([]amount, buckets), make([]amount, buckets)
	for _, it := range f.items {
		into, end := &never, it.end(def)
		if end >= 0 {
			if i := (end - from) / (every * 1000); end <= now {
				into = &killed
			} else if i < buckets {
				into = &in[i]
				if it.own != expiry.Inherit {
					own[i].items++
					own[i].bytes += it.size
				}
			} else {
				into = &later
			}
		}
		into.items++
		into.bytes += it.size
	}
	pair := func(a amount) engine.Reply { return engine.Array(engine.Integer(a.items), engine.Integer(a.bytes)) }
	var list, owns []engine.Reply
	for i, a := range in {
		owns = append(owns, pair(own[i]))
		list = append(list, engine.Array(engine.Integer(from+int64(i)*every*1000), engine.Integer(a.items), engine.Integer(a.bytes)))
	}
	want := engine.Map(engine.Bulk("now"), engine.Integer(now), engine.Bulk("every"), engine.Integer(every), engine.Bulk("killed"), pair(killed),
		engine.Bulk("buckets"), engine.Array(list...), engine.Bulk("later"), pair(later), engine.Bulk("never"), pair(never), engine.Bulk("own"), engine.Array(owns...))
	if a, b := notation(want), notation(g.do(1, args...)); a != b {
		g.t.Errorf("at %d default %d %q: the model has\n%s\nthe server\n%s", now, f.def, args, a, b)
	}
}

func (g *foresightGame) judgeDue(name string) {
	now, f := g.clock.Now(), g.model[name]
	until, limit := int64(1<<62), []string(nil)
	switch g.rnd.IntN(3) {
	case 0:
		s := g.pick(0, 1, 2, 5)
		until, limit = now+s*1000, []string{"WITHIN", strconv.FormatInt(s, 10)}
	case 1:
		ms := now + g.pick(0, 1, 1000, 2500)
		until, limit = ms-1, []string{"BEFORE", strconv.FormatInt(ms, 10)}
	}
	var due, never []string
	for id, it := range f.items {
		if end := it.end(f.def); end < 0 {
			never = append(never, id)
		} else if end <= until {
			due = append(due, id)
		}
	}
	f.sort(due, f.def)
	var got, gotNever []string
	count := strconv.Itoa(1 + g.rnd.IntN(6))
	for cursor := "0"; ; {
		r := g.do(1, append([]string{"CONTAINER.DUE", name, cursor, "COUNT", count}, limit...)...)
		for i := 0; i < len(r.Elems[1].Elems); i += 2 {
			id, end := r.Elems[1].Elems[i].Str, r.Elems[1].Elems[i+1].Int
			if got = append(got, id); end != f.items[id].end(f.def) {
				g.t.Errorf("%s is due at %d, in the model at %d", id, end, f.items[id].end(f.def))
			}
		}
		if cursor = r.Elems[0].Str; cursor == "0" || len(got) > len(due) {
			break
		}
	}
	for cursor := "0"; ; {
		r := g.do(1, "CONTAINER.DUE", name, cursor, "NEVER", "COUNT", count)
		for _, id := range r.Elems[1].Elems {
			gotNever = append(gotNever, id.Str)
		}
		if cursor = r.Elems[0].Str; cursor == "0" {
			break
		}
	}
	slices.Sort(never)
	slices.Sort(gotNever)
	if !slices.Equal(got, due) || !slices.Equal(gotNever, never) {
		g.t.Errorf("at %d default %d %q: due are %q and never %q, in the model %q and %q", now, f.def, limit, got, gotNever, due, never)
	}
}
