package foresight

import (
	"math/rand/v2"

	"mayfly/expiry"
	"mayfly/keyspace/memtable"
)

// FirstDeath returns when the first item of a table died that is within limits, by the history of its
// container, which must not be empty. It is now if there is none. Times are in ms.
func FirstDeath(t *memtable.Table, l expiry.Limits, history []expiry.HistoryEntry, now int64) (died int64) {
	died = now
	t.FirstDead(l, func(e *memtable.Entry) {
		at, _, _ := expiry.Death(e.TS(), e.ExpireAt(), history, now)
		died = min(died, at)
	})
	return died
}

// TimeLeft estimates the mean time left to items that will die. The zero value has drawn none.
type TimeLeft struct{ sum, drawn int64 } // ms; items

// Draw draws up to n random items of a table, at a moment in ms.
func (l *TimeLeft) Draw(t *memtable.Table, p *expiry.Policy, now int64, n int) {
	for range n {
		_, e := t.RandomExpiring(p, rand.IntN)
		if e == nil {
			return
		}
		if end, _ := e.End(p); end > now {
			l.sum += end - now
			l.drawn++
		}
	}
}

// Average returns the estimate in ms; 0 if no item was drawn.
func (l *TimeLeft) Average() int64 {
	if l.drawn == 0 {
		return 0
	}
	return l.sum / l.drawn
}
