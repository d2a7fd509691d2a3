package foresight

import (
	"container/heap"
	"slices"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/memtable"
)

// Effect is what a new default would do to the living items of a container. Kills, Sooner, Later and Same add
// up to all of them.
type Effect struct {
	Now int64 // ms; the moment at which all items are judged

	Documents int64 // would die at once
	Keys      int64 // plain keys that would die at once
	Bytes     int64 // of the ids and bodies of both
	Oldest    int64 // ms; the first last write among both, if any
	Newest    int64 // ms; the last one

	Sooner int64 // of the survivors: their end comes nearer
	Later  int64 // it moves away, or goes
	Same   int64
	Never  int64 // survivors without an end: they are counted in Later or Same too

	def     expiry.TTL
	policy  expiry.Policy // that rules now
	next    expiry.Policy // that would rule
	dead    expiry.Limits
	killed  expiry.Limits
	most    int // of sample
	overdue overdue
}

// NewEffect returns the effect of a new default at a moment in ms on no items yet. sample is the number of
// ids to keep of those that would die.
func NewEffect(def expiry.TTL, now int64, sample int) *Effect {
	return &Effect{Now: now, def: def, most: sample}
}

// Under implements [Tally]. It sets the policy that the new default would replace. A hold counts as released
// at the moment of the change, so what is overdue by the former default only is not killed.
func (f *Effect) Under(p *expiry.Policy) {
	next := p.Change(f.def, p.Mode, f.Now)
	f.policy, f.next = released(p, f.Now), released(&next, f.Now)
	f.dead, f.killed = p.DeadLimits(f.Now), f.next.DeadLimits(f.Now)
}

// released returns a policy without a hold from now (ms) on.
func released(p *expiry.Policy, now int64) expiry.Policy {
	if p.Hold == "" {
		return *p
	}
	return p.WithHold("", now)
}

// Count implements [Tally].
func (f *Effect) Count(t *memtable.Table, e *memtable.Entry) {
	if e.Within(f.dead) || t.IsHollow(e, f.dead) {
		return
	}
	if e.Within(f.killed) || t.IsHollow(e, f.killed) {
		f.kill(t, e)
		return
	}
	end, ends := e.End(&f.next)
	was, ended := e.End(&f.policy)
	switch {
	case ends == ended && end == was:
		f.Same++
	case !ends || ended && end > was:
		f.Later++
	default:
		f.Sooner++
	}
	if !ends {
		f.Never++
	}
}

func (f *Effect) kill(t *memtable.Table, e *memtable.Entry) {
	ts := e.TS()
	if f.Kills() == 0 {
		f.Oldest, f.Newest = ts, ts
	}
	f.Oldest, f.Newest = min(f.Oldest, ts), max(f.Newest, ts)
	f.Bytes += t.Size(e)
	if e.Plain() {
		f.Keys++
	} else {
		f.Documents++
	}
	end, _ := e.End(&f.next)
	switch {
	case f.most == 0:
	case len(f.overdue) < f.most:
		heap.Push(&f.overdue, ended{end, t.ID(e)})
	case end < f.overdue[0].end || end == f.overdue[0].end && t.ID(e) < f.overdue[0].id:
		f.overdue[0] = ended{end, t.ID(e)}
		heap.Fix(&f.overdue, 0)
	}
}

// Kills returns the number of items that would die at once.
func (f *Effect) Kills() int64 { return f.Documents + f.Keys }

// Items returns the number of items that live.
func (f *Effect) Items() int64 { return f.Kills() + f.Sooner + f.Later + f.Same }

// Sample returns ids of items that would die at once: those whose end by the new default is the longest ago
// first, of one end in the order of ids. The ids are views of the tables, which are safe to keep.
func (f *Effect) Sample() []string {
	list := slices.Clone(f.overdue)
	slices.SortFunc(list, func(a, b ended) int {
		if a.end != b.end {
			return int(min(max(a.end-b.end, -1), 1))
		}
		return strings.Compare(a.id, b.id)
	})
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].id
	}
	return ids
}

// ended is an item and its end.
type ended struct {
	end int64 // ms
	id  string
}

// overdue is a heap of items, the last end first.
type overdue []ended

func (h overdue) Len() int { return len(h) }
func (h overdue) Less(i, j int) bool {
	if h[i].end != h[j].end {
		return h[i].end > h[j].end
	}
	return h[i].id > h[j].id
}
func (h overdue) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *overdue) Push(x any)   { *h = append(*h, x.(ended)) }
func (h *overdue) Pop() any     { panic("foresight: nothing is taken out") }
