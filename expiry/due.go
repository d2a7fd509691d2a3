package expiry

import "math"

// Due returns the moment in ms from which an item may be removed, by the policy that rules:
// [Retention.Purgeable] selects it from then on, and not before. ts is the time of its last write in ms. A
// moment that has passed may be any. It is [NeverDue] for an item that stays as long as nothing changes.
func (r Retention) Due(p *Policy, ts, expireAt int64) int64 {
	switch {
	case expireAt > Inherit:
		return r.due(p, expireAt, true)
	case expireAt == Never:
		return NeverDue
	}
	at := r.due(p, ts, false)
	if end, ok := Cap(expireAt); ok {
		at = min(at, r.due(p, end, true))
	}
	return at
}

// EarliestDue returns the earliest moment in ms from which one of many items may be removed. byDefault is the
// earliest last write of those that inherit, byOwnTTL the earliest end or cap of those with one. [NeverDue]
// stands for none of a kind.
func (r Retention) EarliestDue(p *Policy, byDefault, byOwnTTL int64) int64 {
	at := NeverDue
	if byDefault != NeverDue {
		at = r.due(p, byDefault, false)
	}
	if byOwnTTL != NeverDue {
		at = min(at, r.due(p, byOwnTTL, true))
	}
	return at
}

// due is Due of an item by the one moment that decides: its own end, or its last write. Later moments are due
// no earlier.
func (r Retention) due(p *Policy, moment int64, own bool) int64 {
	at := p.killsAt(moment, own)
	for i := range r {
		at = max(at, min(r[i].Policy.killsAt(moment, own), r[i].Until))
	}
	return at
}

// killsAt returns the moment in ms from which DeadTo selects an item by its own end or its last write.
func (p *Policy) killsAt(moment int64, own bool) int64 {
	mark := p.InheritDeadTo
	if own {
		mark = p.OwnDeadTo
	}
	switch {
	case moment <= mark:
		return math.MinInt64
	case p.Hold != "" || p.Default == Off || p.Default == Forever && !own:
		return NeverDue
	case own:
		return moment
	}
	return after(moment, p.Default)
}
