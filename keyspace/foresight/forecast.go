package foresight

import (
	"mayfly/expiry"
	"mayfly/keyspace/memtable"
)

// Amount is a number of items.
type Amount struct {
	Items int64
	Bytes int64 // of ids and bodies
}

func (a *Amount) add(bytes int64) {
	a.Items++
	a.Bytes += bytes
}

// Forecast is how much of what lives dies when, if nothing changes. All amounts add up to all that lives.
type Forecast struct {
	Now     int64    // ms; the moment at which all items are judged
	From    int64    // ms; the beginning of the first bucket, a multiple of its width and at most Now
	Every   int64    // ms; the width of a bucket
	Killed  Amount   // dies at once: of the new default, or when the hold is released
	Buckets []Amount // one behind the other
	Own     []Amount // of each bucket, what dies by an end of its own; the rest dies by the container's default
	Later   Amount   // behind the last bucket
	Never   Amount   // without an end, and what sleeps in a container that is off

	change bool // there is a new default
	def    expiry.TTL
	next   expiry.Policy
	dead   expiry.Limits
	killed expiry.Limits
}

// NewForecast returns the forecast of no items yet, at a moment in ms. It has some buckets of a width in ms.
func NewForecast(now, every int64, buckets int) *Forecast {
	return &Forecast{Now: now, From: now - now%every, Every: every, Buckets: make([]Amount, buckets), Own: make([]Amount, buckets)}
}

// Change makes it a forecast for the case that a new default is set now.
func (f *Forecast) Change(def expiry.TTL) { f.change, f.def = true, def }

// Under implements [Tally]. A hold counts as released, at the moment of a change.
func (f *Forecast) Under(p *expiry.Policy) {
	f.next, f.dead = *p, p.DeadLimits(f.Now)
	if f.change {
		f.next = p.Change(f.def, p.Mode, f.Now)
	}
	f.next = released(&f.next, f.Now)
	f.killed = f.next.DeadLimits(f.Now)
}

// Count implements [Tally].
func (f *Forecast) Count(t *memtable.Table, e *memtable.Entry) {
	if e.Within(f.dead) || t.IsHollow(e, f.dead) {
		return
	}
	size := t.Size(e)
	if e.Within(f.killed) || t.IsHollow(e, f.killed) {
		f.Killed.add(size)
		return
	}
	end, by := e.Ending(&f.next)
	if by == "" {
		f.Never.add(size)
		return
	}
	if i := (end - f.From) / f.Every; i < int64(len(f.Buckets)) {
		f.Buckets[i].add(size)
		if by == expiry.ByDocument {
			f.Own[i].add(size)
		}
	} else {
		f.Later.add(size)
	}
}
