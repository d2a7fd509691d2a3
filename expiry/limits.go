package expiry

import "math"

// Limits select items of one container by moments in ms: items that inherit the default by the time of their
// last write, items with an end of their own by that end, items with a cap by either. Items at or before a
// limit are selected.
type Limits struct {
	ByDefault int64
	ByOwnTTL  int64
}

// NoLimits selects nothing.
var NoLimits = Limits{math.MinInt64, math.MinInt64}

// Select reports whether the limits select an item, last written at ts (ms) with an expireAt.
func (l Limits) Select(ts, expireAt int64) bool {
	switch {
	case expireAt > Inherit:
		return expireAt <= l.ByOwnTTL
	case expireAt == Never:
		return false
	case ts <= l.ByDefault:
		return true
	}
	at, capped := Cap(expireAt)
	return capped && at <= l.ByOwnTTL
}

// Min returns limits of items that both select: all of those without a cap. An item with a cap that one
// selects by the default and the other by the cap is left out.
func (l Limits) Min(m Limits) Limits {
	return Limits{min(l.ByDefault, m.ByDefault), min(l.ByOwnTTL, m.ByOwnTTL)}
}

// DeadLimits is DeadTo as limits.
func (p *Policy) DeadLimits(now int64) (l Limits) {
	l.ByDefault, l.ByOwnTTL = p.DeadTo(now)
	return l
}

// Retained is a policy that may rule a container again before a moment.
type Retained struct {
	Policy Policy
	Until  int64 // ms
}

// Retention is the policies of a container that may rule it again. nil is the usual case: dead items are
// purgeable at once. The value does not change.
type Retention []Retained

// Open reports whether a policy of the retention may still rule again at the moment now (ms).
func (r Retention) Open(now int64) bool {
	for i := range r {
		if now < r[i].Until {
			return true
		}
	}
	return false
}

// Purgeable returns the limits of the items that may be removed at the moment now (ms), under the policy that
// rules: they are dead by it and by every policy that may rule again, see [Limits.Min]. Like those of the
// dead, the limits never decrease, if each change of the policy adds the former one to the retention or
// leaves the retention as it is.
func (r Retention) Purgeable(p *Policy, now int64) Limits {
	l := p.DeadLimits(now)
	for i := range r {
		if now < r[i].Until {
			l = l.Min(r[i].Policy.DeadLimits(now))
		}
	}
	return l
}
