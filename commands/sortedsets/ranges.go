package sortedsets

import (
	"strings"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/keyspace/elements"
	"mayfly/redisfmt"
)

// order is what the bounds of a range are.
type order int

const (
	auto    order = iota // ranks, unless a word says otherwise
	byRank               // ranks, of which negative ones count from the end
	byScore              // scores
	byLex                // members, all of whose scores are the same
)

// RangeCommands are those of ranges.
var RangeCommands = []engine.Command{
	counting("zcount", "2.0.0", "Count the members in a sorted set with scores within the given values", byScore),
	counting("zlexcount", "2.8.9", "Count the number of members in a sorted set between a given lexicographical range", byLex),
	ranging("zrange", "key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]", "1.2.0", "Return a range of members in a sorted set", auto, false),
	ranging("zrangebylex", "key min max [LIMIT offset count]", "2.8.9", "Return a range of members in a sorted set, by lexicographical range", byLex, false),
	ranging("zrangebyscore", "key min max [WITHSCORES] [LIMIT offset count]", "1.0.5", "Return a range of members in a sorted set, by score", byScore, false),
	{
		Name: "zrangestore", Syntax: "dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]", Since: "6.2.0",
		Summary: "Store a range of members from sorted set into another key",
		Flags:   grow, Keys: engine.Keys{First: 1, Last: 2, Step: 1}, Access: "OW update, RO access", Walks: engine.Always, Parse: parseRangeStore,
	},
	removing("zremrangebylex", "min max", "2.8.9", "Remove all members in a sorted set between the given lexicographical range", byLex),
	removing("zremrangebyrank", "start stop", "2.0.0", "Remove all members in a sorted set within the given indexes", byRank),
	removing("zremrangebyscore", "min max", "1.2.0", "Remove all members in a sorted set within the given scores", byScore),
	ranging("zrevrange", "key start stop [WITHSCORES]", "1.2.0", "Return a range of members in a sorted set, by index, with scores ordered from high to low", byRank, true),
	ranging("zrevrangebylex", "key max min [LIMIT offset count]", "2.8.9", "Return a range of members in a sorted set, by lexicographical range, ordered from higher to lower strings.", byLex, true),
	ranging("zrevrangebyscore", "key max min [WITHSCORES] [LIMIT offset count]", "2.2.0", "Return a range of members in a sorted set, by score, with scores ordered from high to low", byScore, true),
}

func counting(name, since, summary string, by order) engine.Command {
	return row(name, "key min max", since, summary, read|fast, "", func(in *engine.Input) (engine.Run, error) {
		b, err := parseBounds(by, in.Args[2], in.Args[3])
		if err != nil {
			return nil, err
		}
		return items.OnElements(kind, func(_ *engine.Context, h keyspace.Elements, found bool) engine.Reply {
			if !found {
				return engine.Count(0)
			}
			s := h.Sorted()
			from, to := b.ranks(&s)
			return engine.Count(to - from)
		}), nil
	})
}

func ranging(name, syntax, since, summary string, by order, backwards bool) engine.Command {
	c := row(name, syntax, since, summary, read, "", func(in *engine.Input) (engine.Run, error) {
		r, err := parseRange(in.Args[2:], by, backwards, false)
		if err != nil {
			return nil, err
		}
		return r.run, nil
	})
	c.Walks = func(args []string) bool { return wide(args, by) }
	return c
}

// wide reports whether a range may have many members: one of ranks, or one with a LIMIT, need not.
func wide(args []string, by order) bool {
	r, err := parseRange(args[2:], by, false, false)
	const many = 1000
	switch {
	case err != nil:
		return false
	case r.by == byRank:
		return items.WideRange(args)
	}
	return r.limit < 0 || r.limit >= many
}

func removing(name, bounds, since, summary string, by order) engine.Command {
	c := row(name, "key "+bounds, since, summary, frees, "RW delete", func(in *engine.Input) (engine.Run, error) {
		b, err := parseBounds(by, in.Args[2], in.Args[3])
		if err != nil {
			return nil, err
		}
		return items.OnChange(kind, func(x *engine.Context, h *items.Change) (engine.Reply, []string) {
			if !h.Exists() {
				return engine.Count(0), nil
			}
			s := h.Sorted()
			from, to := b.ranks(&s)
			if from == to {
				return engine.Count(0), nil
			}
			remove(x, h, &s, from, to, false, func(elements.Scored) {})
			return engine.Count(to - from), []string{name}
		}), nil
	})
	c.Walks = engine.Always
	return c
}

// remove removes the members of the ranks from one up to below another, and calls each with them before, or
// with the last one first. Of many it writes those anew that stay.
func remove(x *engine.Context, h *items.Change, s *elements.Living, from, to int, backwards bool, each func(elements.Scored)) {
	if to-from == 1 { // the commonest: it needs no list, and no walk
		e := s.At(from)
		each(e)
		h.Delete(e.Member)
		return
	}
	const share = 4
	few := to-from < s.Len()/share || to-from < share
	var members []string
	for e := range s.Range(from, to, backwards) {
		if each(e); few {
			members = append(members, e.Member)
		}
	}
	if few {
		for _, member := range members {
			h.Delete(member)
		}
		return
	}
	x.Work += h.Size()
	first, behind := elements.Scored{}, elements.Scored{}
	if first = s.At(from); to < s.Len() {
		behind = s.At(to)
	}
	last := to == s.Len()
	all := h.All() // as they are before
	h.Replace(func(stays func(keyspace.Element) bool) {
		for e := range all {
			at := elements.ScoredOf(e)
			if gone := !at.Before(first) && (last || at.Before(behind)); !gone && !stays(e) {
				return
			}
		}
	})
}

// bounds are the bounds of a range, the lower one first.
type bounds struct {
	by          order
	start, stop int64 // ranks
	low, high   bound
}

// bound is a score or a member, or a place before or behind all.
type bound struct {
	score     float64
	member    string
	end       int  // -1: before all, 1: behind all members
	exclusive bool // the member or the score is not in the range
}

const (
	errBoundFloat  = engine.Error("ERR min or max is not a float")
	errBoundString = engine.Error("ERR min or max not valid string range item")
)

func parseBounds(by order, low, high string) (b bounds, err error) {
	b.by = by
	ok1, ok2 := false, false
	switch by {
	case byScore:
		b.low, ok1 = parseScoreBound(low)
		b.high, ok2 = parseScoreBound(high)
		err = errBoundFloat
	case byLex:
		b.low, ok1 = parseLexBound(low)
		b.high, ok2 = parseLexBound(high)
		err = errBoundString
	default:
		b.start, ok1 = redisfmt.ParseInt(low)
		b.stop, ok2 = redisfmt.ParseInt(high)
		err = engine.ErrNotInteger
	}
	if ok1 && ok2 {
		return b, nil
	}
	return b, err
}

func parseScoreBound(text string) (b bound, ok bool) {
	text, b.exclusive = strings.CutPrefix(redisfmt.CString(text), "(")
	if text == "" { // C's strtod reads it as 0
		return b, true
	}
	b.score, ok = redisfmt.ParseAnyDouble(strings.TrimLeft(text, " \t\n\v\f\r"))
	return b, ok
}

func parseLexBound(text string) (b bound, ok bool) {
	switch {
	case text == "-":
		b.end = -1
	case text == "+":
		b.end = 1
	case strings.HasPrefix(text, "("):
		b.member, b.exclusive = strings.Clone(text[1:]), true
	case strings.HasPrefix(text, "["):
		b.member = strings.Clone(text[1:])
	default:
		return b, false
	}
	return b, true
}

// isBelow reports whether a member comes before all of a range whose lower bound it is; with behind, not
// before the first behind a range whose upper bound it is.
func (b *bound) isBelow(by order, s elements.Scored, behind bool) bool {
	including := b.exclusive != behind
	switch {
	case b.end != 0:
		return b.end > 0
	case by == byScore:
		return s.Score < b.score || including && s.Score == b.score
	}
	return s.Member < b.member || including && s.Member == b.member
}

// ranks returns the ranks of the range: from one up to below another.
func (b *bounds) ranks(s *elements.Living) (from, to int) {
	if b.by == byRank {
		return items.IndexRange(b.start, b.stop, s.Len())
	}
	from = s.Rank(func(e elements.Scored) bool { return !b.low.isBelow(b.by, e, false) })
	to = s.Rank(func(e elements.Scored) bool { return !b.high.isBelow(b.by, e, true) })
	return from, max(from, to)
}

// rangeOf is a parsed ZRANGE.
type rangeOf struct {
	bounds
	backwards, withScores bool
	offset, limit         int64 // limit is negative without
}

const (
	errLimitByRank = engine.Error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX")
	errScoresByLex = engine.Error("ERR syntax error, WITHSCORES not supported in combination with BYLEX")
)

// parseRange parses what follows the key.
func parseRange(args []string, by order, backwards, stores bool) (r rangeOf, err error) {
	low, high := args[0], args[1]
	r.limit, r.backwards = -1, backwards
	free := by == auto
	for rest := args[2:]; len(rest) > 0; {
		used, ok := 1, true
		switch word := rest[0]; {
		case !stores && redisfmt.EqualFold(word, "WITHSCORES"):
			r.withScores = true
		case redisfmt.EqualFold(word, "LIMIT") && len(rest) > 2:
			var ok2 bool
			r.offset, ok = redisfmt.ParseInt(rest[1])
			r.limit, ok2 = redisfmt.ParseInt(rest[2])
			ok, used = ok && ok2, 3
		case free && !r.backwards && redisfmt.EqualFold(word, "REV"):
			r.backwards = true
		case by == auto && redisfmt.EqualFold(word, "BYLEX"):
			by = byLex
		case by == auto && redisfmt.EqualFold(word, "BYSCORE"):
			by = byScore
		default:
			return r, engine.ErrSyntax
		}
		if !ok {
			return r, engine.ErrNotInteger
		}
		rest = rest[used:]
	}
	if by == auto {
		by = byRank
	}
	switch {
	case r.limit != -1 && by == byRank:
		return r, errLimitByRank
	case r.withScores && by == byLex:
		return r, errScoresByLex
	case r.backwards && by != byRank:
		low, high = high, low
	}
	r.bounds, err = parseBounds(by, low, high)
	return r, err
}

// ranks returns the ranks of the range, with its LIMIT.
func (r *rangeOf) ranks(s *elements.Living) (from, to int) {
	from, to = r.bounds.ranks(s)
	switch {
	case r.by == byRank && r.backwards:
		return s.Len() - to, s.Len() - from
	case r.by == byRank:
		return from, to
	case r.offset < 0:
		return from, from
	}
	skip := int(min(r.offset, int64(to-from)))
	left := to - from - skip
	if r.limit >= 0 {
		left = int(min(int64(left), r.limit))
	}
	if r.backwards {
		return to - skip - left, to - skip
	}
	return from + skip, from + skip + left
}

func (r *rangeOf) run(x *engine.Context) engine.Reply {
	h, found, err := get(x, x.Input.Args[1])
	switch {
	case err != nil:
		return engine.Fail(err)
	case !found:
		return engine.Array()
	}
	s := h.Sorted()
	from, to := r.ranks(&s)
	const about = 32 // bytes of a member
	if size := (to - from) * about; size >= engine.SlowBytes {
		s = s.Snapshot()
		return x.Compute(size, func() engine.Reply { return r.reply(x, &s, from, to) })
	}
	return r.reply(x, &s, from, to)
}

func (r *rangeOf) reply(x *engine.Context, s *elements.Living, from, to int) engine.Reply {
	list := newScored(x, r.withScores)
	list.Expect((to - from) * (1 + btoi(list.with && !list.nested)))
	for e := range s.Range(from, to, r.backwards) {
		if !list.add(e) {
			break
		}
	}
	return list.Array()
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func parseRangeStore(in *engine.Input) (engine.Run, error) {
	r, err := parseRange(in.Args[3:], auto, false, true)
	if err != nil {
		return nil, err
	}
	return items.OnDatabase(func(x *engine.Context, c *keyspace.Container) engine.Reply {
		h, found, err := get(x, x.Input.Args[2])
		if err != nil {
			return engine.Fail(err)
		}
		return items.ReplaceElements(x, c, x.Input.Args[1], kind, "zrangestore", func(yield func(keyspace.Element) bool) {
			if !found {
				return
			}
			s := h.Sorted().Snapshot()
			from, to := r.ranks(&s)
			for e := range s.Range(from, to, false) {
				if !yield(e.Element()) {
					return
				}
			}
		})
	}), nil
}
