package keyspace

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/eviction"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/index"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
)

// everything writes at random all that a keyspace can have.
type everything struct {
	*opened
	t         *testing.T
	random    *rand.Rand
	rollbacks bool
}

var (
	historyNames  = []string{"0", "3", "a", "b", "c", "d", "20"}
	historyGroups = []string{"g", "h", "\xff"}
)

func (h *everything) name() string { return historyNames[h.random.IntN(len(historyNames))] }
func (h *everything) id() string   { return fmt.Sprint("id", h.random.IntN(30)) }

func (h *everything) body() string {
	if h.random.IntN(8) == 0 { // no object
		return []string{"5", `"at"`, "null", `[1,{"at":2}]`}[h.random.IntN(4)]
	}
	body := fmt.Sprintf(`{"n":%d,"s":"%c","at":%d}`, h.random.IntN(5), 'a'+h.random.IntN(3), h.clock.Now()+int64(h.random.IntN(60_000)))
	if h.random.IntN(8) == 0 {
		body = body[:len(body)-1] + `,"long":"` + strings.Repeat("x", 4096+h.random.IntN(2)*30_000) + `"}`
	}
	return body
}

func (h *everything) end() int64 {
	return []int64{expiry.Inherit, expiry.Inherit, expiry.Never, h.clock.Now() + 1000*int64(1+h.random.IntN(40)), expiry.CapAt(h.clock.Now() + 1000*int64(1+h.random.IntN(40)))}[h.random.IntN(5)]
}

func (h *everything) entry(tx *Tx, c *Container) (id streamid.ID) {
	n := h.random.IntN(10)
	tx.Deaths(c).Range(streamid.ID{}, streamid.Max, false, func(e deathlog.Entry) bool {
		id = e.ID
		n--
		return n > 0
	})
	return id
}

// change makes a change in a transaction that has locked everything.
func (h *everything) change(tx *Tx) {
	name := h.name()
	c := tx.Container(name)
	if c == nil {
		if h.random.IntN(2) == 0 {
			c, _ = tx.CreateNumbered(name, uint32(h.random.IntN(2)*h.random.IntN(40)), keptDefaults[h.random.IntN(len(keptDefaults))], expiry.Mode(h.random.IntN(2)))
			if c != nil && h.random.IntN(3) == 0 {
				h.setLog(tx, c)
			}
		}
		return
	}
	switch step := h.random.IntN(100); {
	case step < 34:
		h.write(tx, c)
	case step < 40:
		tx.Delete(c, h.id())
	case step < 44:
		tx.SetCounted(c, keptDefaults[h.random.IntN(len(keptDefaults))], expiry.Mode(h.random.IntN(2)), int64(h.random.IntN(4)-1))
	case step < 48:
		tx.Flush(c)
	case step < 49:
		tx.FlushAll()
	case step < 53 && !c.IsDatabase():
		tx.Drop(c)
	case step < 56:
		if other := tx.Container(h.name()); other != nil {
			tx.Swap(c, other)
		}
	case step < 62:
		as := ""
		if h.random.IntN(3) == 0 {
			as = h.name()
		}
		tx.Undo(name, as)
	case step < 67:
		h.setLog(tx, c)
	case step < 70:
		if c.Policy().Hold == "" {
			tx.SetHold(c, "because")
		} else {
			tx.Release(c, c.Policy().Default, c.Policy().Mode, -1)
		}
	case step < 72:
		if member := []string{"", "at"}[h.random.IntN(2)]; tx.DeadlineFree(c, member) {
			tx.SetDeadline(c, member)
		}
	case step < 76:
		d, err := index.Define([][]string{{"/n"}, {"/s", "/n"}, {"/at"}}[h.random.IntN(3)], false)
		drill.Check(h.t, err)
		if !tx.CreateIndex(c, d) {
			tx.DropIndex(c, d)
		}
	case step < 88:
		h.changeGroup(tx, c)
	case step < 91:
		if c.deaths != nil {
			tx.Deaths(c).Delete([]streamid.ID{h.entry(tx, c), h.entry(tx, c)})
		}
	case step < 93:
		if c.deaths != nil {
			tx.Deaths(c).Trim(int64(h.random.IntN(20)), streamid.ID{}, int64(h.random.IntN(3)))
		}
	case step < 94:
		if from := tx.Container(h.name()); from != nil {
			s := from.record()
			s.Name, s.Hidden, s.Log, s.Aside = h.name(), nil, nil, nil
			tx.RestoreContainer(s)
		}
	case step < 96:
		tx.ClearHistory(c)
	}
}

func (h *everything) setLog(tx *Tx, c *Container) {
	seconds := []int64{0, 20, 100, int64(expiry.MaxTTL)}[h.random.IntN(4)]
	drill.Check(h.t, tx.SetLog(c, LogSettings{Seconds: seconds, MaxLen: int64(5 + h.random.IntN(40)), Bodies: h.random.IntN(2) == 0, Deletes: h.random.IntN(2) == 0}))
}

// write puts an item, or only its header.
func (h *everything) write(tx *Tx, c *Container) {
	id := h.id()
	body, kind := h.body(), []Kind{Document, Document, Plain}[h.random.IntN(3)]
	if it, ok := tx.Get(c, id); ok && h.random.IntN(2) == 0 {
		body, kind = it.Body, it.Kind // a touch of a large item
	}
	tx.Put(c, id, kind, body, h.end())
}

func (h *everything) changeGroup(tx *Tx, c *Container) {
	if c.deaths == nil {
		return
	}
	name := historyGroups[h.random.IntN(len(historyGroups))]
	if tx.Group(c, name) == nil {
		tx.CreateGroup(c, name, streamid.ID{}, 0)
		return
	}
	if h.random.IntN(12) == 0 {
		tx.DestroyGroup(c, name)
		return
	}
	s, _ := tx.Deaths(c).State()
	var ids []streamid.ID
	tx.Deaths(c).Range(streamid.ID{}, streamid.Max, false, func(e deathlog.Entry) bool {
		ids = append(ids, e.ID)
		return len(ids) < 10
	})
	consumer := fmt.Sprint("w", h.random.IntN(3))
	tx.ChangeGroup(c, name, func(b *groups.Changes) {
		for range 1 + h.random.IntN(3) {
			switch h.random.IntN(7) {
			case 0, 1:
				b.Deliver(&groups.Stream{Added: s.Added, Length: s.Length, First: s.First, Last: s.Last, MaxDeleted: s.MaxDeleted}, ids, consumer, tx.Now(), h.random.IntN(4) == 0)
			case 2:
				for _, id := range ids {
					if h.random.IntN(3) == 0 {
						b.Ack([]streamid.ID{id})
					}
				}
			case 3:
				for _, id := range ids {
					b.Claim(id, &groups.Claim{Consumer: consumer, Now: tx.Now(), Time: tx.Now(), Count: -1, Force: h.random.IntN(2) == 0})
				}
			case 4:
				b.DeleteConsumer(consumer)
			case 5:
				b.CreateConsumer(consumer, tx.Now())
			case 6:
				b.SetID(streamid.ID{Ms: uint64(h.random.IntN(5))}, groups.Unknown)
			}
		}
	})
}

// step makes one or more transactions, or something of the background.
func (h *everything) step() {
	switch step := h.random.IntN(40); {
	case step < 5:
		h.clock.Advance(time.Duration(h.random.IntN(5000)) * time.Millisecond)
	case step < 7:
		h.PurgeOnce()
	case step == 7:
		h.purge.Drain(func() bool { return false })
	case step == 8:
		h.EndWindows()
	case step == 9 && h.random.IntN(4) == 0:
		h.EndAllWindows()
	case step == 10:
		drill.Check(h.t, h.SetUndoWindow([]int64{0, 5, 30, 60}[h.random.IntN(4)]))
	case step == 11:
		h.KeepDeadUntil([]int64{0, h.clock.Now() + 3000}[h.random.IntN(2)])
	case step == 12:
		h.evictAll(h.Used() - int64(h.random.IntN(3000)))
	case step == 13 && h.rollbacks:
		var tx Tx
		h.BeginAll(&tx)
		for range 1 + h.random.IntN(6) {
			h.change(&tx)
		}
		tx.Rollback()
	case step < 24: // one item
		var tx Tx
		id := h.id()
		h.BeginKey(&tx, id)
		if c := tx.Container(h.name()); c != nil {
			if h.random.IntN(4) == 0 {
				tx.Delete(c, id)
			} else {
				tx.Put(c, id, Document, h.body(), h.end())
			}
		}
		tx.Close()
	case step < 26:
		var tx Tx
		id := h.id()
		h.BeginKey(&tx, id)
		if c := tx.Container(h.name()); c != nil {
			tx.Restore(c, id, Item{Kind: Document, Body: h.body(), TS: h.clock.Now() - int64(h.random.IntN(20_000)), ExpireAt: h.end()})
		}
		tx.Close()
	default:
		var tx Tx
		h.BeginAll(&tx)
		for range 1 + h.random.IntN(4) {
			h.change(&tx)
		}
		tx.Close()
	}
}

// TestApplyHistory: after each few steps of a random history of everything that writes, a follower is what
// the leader is, and what its own folder has.
func TestApplyHistory(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 1, 2, 100, func(t *testing.T, seed uint64) {
		h := &everything{t: t, random: rand.New(rand.NewPCG(seed, 7)), rollbacks: seed%2 == 0,
			opened: open(t, func(o *Options) { o.Partitions = 1 + int(seed%4); o.noCheckpoints = true })}
		h.evictBy([]eviction.Policy{eviction.AllKeysLRU, eviction.VolatileTTL, eviction.AllKeysRandom}[seed%3])
		f := newMirror(t, h.opened)
		f.rollbacks = h.rollbacks
		defer f.ks.Close()
		for i := range 600 {
			h.step()
			if h.random.IntN(6) == 0 {
				f.compare()
			}
			if i%100 == 99 {
				f.compareReopened()
			}
			if i%150 == 75 {
				f.ship()
				drill.Check(t, f.ks.Save())
			}
		}
		f.compare()
	})
}
