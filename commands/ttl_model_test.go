package commands

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// model is the rules of time to live (docs/ttl.md) in their simplest form. Before every event it visits
// every document and removes the dead ones for good.
type model struct {
	def  int64 // the container's default in s; 0 off, -1 on without a default
	docs map[string]modelDoc
}

// modelDoc is an object with a ttl, or another value with a moment.
type modelDoc struct {
	ts, ttl int64 // ms; s, 0 without
	value   bool  // no object
	moment  int64 // ms, of a value; 0 without, -1 for never
	kept    int64 // ms, of an object with a ttl: the end that it keeps instead; 0 without
}

// end returns the time of death of a document under the current default, in ms; -1 for never.
func (m *model) end(d modelDoc) int64 {
	if d.moment != 0 && m.def != 0 {
		return d.moment
	}
	ttl := d.ttl
	if ttl == 0 {
		ttl = m.def
	}
	if m.def == 0 || ttl == -1 {
		return -1
	}
	if d.kept != 0 {
		return d.kept
	}
	return d.ts + ttl*1000
}

func (m *model) removeDead(now int64) {
	for id, d := range m.docs {
		if end := m.end(d); end >= 0 && end <= now {
			delete(m.docs, id)
		}
	}
}

// TestTTLAgainstModel plays random histories of writes, changes of the default, restarts, purges and
// passing time. Existence, expirations and counts must agree with the model.
func TestTTLAgainstModel(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 2, 3, 200, func(t *testing.T, seed uint64) {
		t.Parallel()
		playModel(t, rand.New(rand.NewPCG(seed, 0)))
	})
}

func playModel(t *testing.T, rnd *rand.Rand) {
	w := newHarness(t)
	m := &model{docs: map[string]modelDoc{}}
	w.expect("OK", "CONTAINER.CREATE", "c")
	w.expect("OK", "SELECT", "c")
	pick := func(of ...int64) int64 { return of[rnd.IntN(len(of))] }
	for range 300 {
		now := w.clock.Now()
		id := "d" + strconv.Itoa(rnd.IntN(8))
		d, alive := m.docs[id]
		ttl := pick(0, 0, -1, 1, 2, 3, 5)
		event := ""
		// The commands that edit the member ttl refuse a document that is not an object.
		refusal := ""
		if d.value {
			refusal = "(error) ERR the document is not an object: JSON.* commands change it"
		}
		switch rnd.IntN(20) {
		case 0, 1, 2:
			event = fmt.Sprintf("put %s with ttl %d", id, ttl)
			json := "{}"
			if ttl != 0 {
				json = fmt.Sprintf(`{"ttl":%d}`, ttl)
			}
			w.expect("OK", "DOC.PUT", "c", id, json)
			m.docs[id] = modelDoc{ts: now, ttl: ttl}
		case 3:
			event = "put nx " + id
			want := "(nil)"
			if !alive {
				want, m.docs[id] = "OK", modelDoc{ts: now}
			}
			w.expect(want, "DOC.PUT", "c", id, "{}", "NX")
		case 4:
			event = "touch " + id
			if alive {
				d.ts, d.kept = now, 0
				m.docs[id] = d
			}
			if rnd.IntN(2) == 0 {
				w.expect(notation(engine.Flag(alive)), "DOC.TOUCH", "c", id)
				break
			}
			want := "(nil)"
			if alive {
				want = fmt.Sprintf("%q", strconv.FormatInt(now/1000, 10))
			}
			w.expect(want, "DOC.GETTOUCH", "c", id, "MINAGE", "0", "PATH", "/_ts")
		case 5:
			event = fmt.Sprintf("set ttl of %s to %d", id, ttl)
			want := notation(engine.Flag(alive))
			if alive && d.value {
				want = refusal
			} else if alive {
				m.docs[id] = modelDoc{ts: now, ttl: ttl}
			}
			value := strconv.FormatInt(ttl, 10)
			if ttl == 0 {
				value = "null"
			}
			w.expect(want, "DOC.SETTTL", "c", id, value)
		case 6:
			event = "delete " + id
			delete(m.docs, id)
			w.expect(notation(engine.Flag(alive)), "DOC.DEL", "c", id)
		case 7, 8:
			m.def = pick(0, -1, 1, 2, 3, 4)
			event = fmt.Sprintf("default %d", m.def)
			value := strconv.FormatInt(m.def, 10)
			if m.def == 0 {
				value = "off"
			}
			w.expect("OK", "CONTAINER.SET", "c", "TTL", value)
		case 9:
			event = "purge"
			w.engine.Keyspace().PurgeOnce()
		case 10:
			if rnd.IntN(4) > 0 {
				continue
			}
			event = "restart"
			w.restart()
			w.expect("OK", "SELECT", "c")
		case 11:
			event = fmt.Sprintf("patch ttl of %s to %d", id, ttl)
			operation := []string{"SET", "/ttl", strconv.FormatInt(ttl, 10)}
			if ttl == 0 {
				operation = append(operation[:2], "null", "REMOVE", "/ttl")
			}
			want := "(nil)"
			if alive && d.value {
				want = refusal
			} else if alive {
				want, m.docs[id] = "OK", modelDoc{ts: now, ttl: ttl}
			}
			w.expect(want, append([]string{"DOC.PATCH", "c", id}, operation...)...)
		case 12:
			event = fmt.Sprintf("merge ttl %d into %s", ttl, id)
			json := "{}"
			if ttl != 0 {
				json = fmt.Sprintf(`{"ttl":%d}`, ttl)
			} else {
				ttl = d.ttl // 0 if there is none
			}
			if alive && d.value {
				w.expect(refusal, "DOC.MERGE", "c", id, json)
				break
			}
			w.expect("OK", "DOC.MERGE", "c", id, json)
			m.docs[id] = modelDoc{ts: now, ttl: ttl}
		case 13, 14:
			event = "set a value " + id
			w.expect("OK", "JSON.SET", id, "$", []string{"5", `"ttl"`, "[1]", "null", `[{"ttl":1}]`}[rnd.IntN(5)])
			m.docs[id] = modelDoc{ts: now, value: true}
		case 17, 18:
			value, option := rnd.IntN(2) == 0, []string{"EX", "EXAT", "KEEPTTL"}[rnd.IntN(3)]
			event = fmt.Sprintf("set %s with an end: %s %d", id, option, ttl)
			moment := now + ttl*1000
			args := []string{"JSON.SET", id, "$", map[bool]string{true: "5", false: `{"ttl":4}`}[value], option}
			next := modelDoc{ts: now, value: value}
			switch option {
			case "KEEPTTL": // the end of its own
				if moment = d.moment; d.kept != 0 {
					moment = d.kept
				} else if d.ttl > 0 {
					moment = d.ts + d.ttl*1000
				} else if d.ttl == -1 {
					moment = -1
				}
			case "EXAT":
				moment = (now/1000 + ttl) * 1000
				args = append(args, strconv.FormatInt(now/1000+ttl, 10))
			case "EX":
				if ttl < 1 {
					continue
				}
				args = append(args, strconv.FormatInt(ttl, 10))
			}
			switch {
			case value:
				next.moment = moment
			case moment == 0:
				next.ttl = 4
			case moment == -1:
				next.ttl = -1
			default:
				if next.ttl = max((moment-now+999)/1000, 1); option == "KEEPTTL" {
					next.kept = moment
				}
			}
			w.expect("OK", args...)
			if m.docs[id] = next; option == "EXAT" && moment <= now {
				delete(m.docs, id)
			}
		case 15:
			event = fmt.Sprintf("expire the value %s in %d s", id, ttl)
			if !d.value || ttl < 1 {
				continue
			}
			m.docs[id] = modelDoc{ts: now, value: true, moment: now + ttl*1000}
			w.expect("(integer) 1", "EXPIRE", id, strconv.FormatInt(ttl, 10))
		case 16:
			event = "change the value or object " + id
			if alive {
				d.ts, d.kept = now, 0
				m.docs[id] = d
				w.expect("OK", "JSON.MERGE", id, "$", map[bool]string{true: "7", false: `{"a":1}`}[d.value])
			}
		default:
			by := pick(1, 500, 999, 1000, 1001, 2000)
			event = fmt.Sprintf("%d ms pass", by)
			w.clock.Advance(time.Duration(by) * time.Millisecond)
		}
		now = w.clock.Now()
		m.removeDead(now)
		// A look-up removes a dead document. Mostly the dead stay until later, under another default or after
		// a restart.
		if rnd.IntN(6) == 0 {
			for n := range 8 {
				id := "d" + strconv.Itoa(n)
				end, left := int64(-2), int64(-2)
				if d, alive := m.docs[id]; alive {
					if end, left = m.end(d), -1; end >= 0 {
						left = end - now
					}
				}
				w.expect(notation(engine.Integer(end)), "DOC.PEXPIRETIME", "c", id)
				w.expect(notation(engine.Integer(left)), "DOC.PTTL", "c", id)
			}
		}
		if rnd.IntN(6) == 0 {
			w.expect(notation(engine.Count(len(m.docs))), "DOC.COUNT", "c")
		}
		if t.Failed() {
			t.Fatalf("after: %s", event)
		}
	}
}
