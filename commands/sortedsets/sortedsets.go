package sortedsets

import (
	"math"
	"slices"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/keyspace/elements"
	"mayfly/redisfmt"
)

const (
	read  = engine.ReadOnly
	grow  = engine.Write | engine.DenyOOM
	frees = engine.Write | engine.Frees
	fast  = engine.Fast

	eventZAdd  = "zadd"
	eventZIncr = "zincr"

	kind = keyspace.ZSetKind
)

// Commands are those of single members.
var Commands = []engine.Command{
	{
		Name: "zadd", Syntax: "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]", Since: "1.2.0",
		Summary: "Add one or more members to a sorted set, or update its score if it already exists",
		Differs: "A member that is written loses its end; with INCR it keeps it",
		Flags:   grow | fast, Keys: engine.OneKey, Access: "RW update", Parse: parseZAdd,
	},
	row("zcard", "key", "1.2.0", "Get the number of members in a sorted set", read|fast, "RO", engine.NoParse(items.Length(kind))),
	row("zincrby", "key increment member", "1.2.0", "Increment the score of a member in a sorted set", grow|fast, "RW access update", parseZIncrBy),
	row("zmscore", "key member [member ...]", "6.2.0", "Get the score associated with the given members in a sorted set", read|fast, "", engine.NoParse(runZMScore)),
	{
		Name: "zrandmember", Syntax: "key [count [WITHSCORES]]", Since: "6.2.0", Summary: "Get one or multiple random elements from a sorted set",
		Flags: read, Keys: engine.OneKey, Tips: "nondeterministic_output", Walks: engine.IfLonger(2), Reads: items.ChoosesMany, Parse: parseZRandMember,
	},
	ranking("zrank", "Determine the index of a member in a sorted set", false),
	row("zrem", "key member [member ...]", "1.2.0", "Remove one or more members from a sorted set", frees|fast, "RW delete", engine.NoParse(items.Deleting(kind, "zrem"))),
	ranking("zrevrank", "Determine the index of a member in a sorted set, with scores ordered from high to low", true),
	{
		Name: "zscan", Syntax: "key cursor [MATCH pattern] [COUNT count]", Since: "2.8.0", Summary: "Incrementally iterate sorted sets elements and associated scores",
		Differs: "Cursors are of another kind, and the pattern is bounded as that of `KEYS`. A member that is present throughout comes once, not at least once. A cursor is void after `RENAME`",
		Flags:   read, Keys: engine.OneKey, Tips: "nondeterministic_output", Walks: engine.Always, Parse: parseZScan,
	},
	row("zscore", "key member", "1.2.0", "Get the score associated with the given member in a sorted set", read|fast, "", engine.NoParse(runZScore)),
}

func row(name, syntax, since, summary string, flags engine.Flags, access string, parse func(*engine.Input) (engine.Run, error)) engine.Command {
	return engine.Command{Name: name, Syntax: syntax, Since: since, Summary: summary, Flags: flags, Keys: engine.OneKey, Access: access, Parse: parse}
}

// get returns the sorted set of a key of the session's database: see [items.GetElements].
func get(x *engine.Context, key string) (h keyspace.Elements, found bool, err error) {
	_, h, found, err = items.GetElements(x, key, kind)
	return h, found, err
}

const (
	errNotFloat = engine.Error("ERR value is not a valid float")
	errNaN      = engine.Error("ERR resulting score is not a number (NaN)")
	errNXandXX  = engine.Error("ERR XX and NX options at the same time are not compatible")
	errGTandLT  = engine.Error("ERR GT, LT, and/or NX options at the same time are not compatible")
	errOneIncr  = engine.Error("ERR INCR option supports a single increment-element pair")
)

var toldZAdd, toldZIncr = []string{eventZAdd}, []string{eventZIncr}

// addition is a parsed ZADD.
type addition struct {
	nx, xx, gt, lt, ch, incr bool
	scores                   []float64
	room                     [1]float64 // for the scores, mostly
	first                    int        // argument
}

func parseZAdd(in *engine.Input) (engine.Run, error) { return new(addition).parse(in) }

// parseZIncrBy takes the options of ZADD, as Redis does: with its three arguments each is a syntax error.
func parseZIncrBy(in *engine.Input) (engine.Run, error) { return (&addition{incr: true}).parse(in) }

func (a *addition) parse(in *engine.Input) (engine.Run, error) {
	rest := in.Args[2:]
	for len(rest) > 0 && a.option(rest[0]) {
		rest = rest[1:]
	}
	a.first = len(in.Args) - len(rest)
	switch {
	case len(rest) == 0 || len(rest)%2 != 0:
		return nil, engine.ErrSyntax
	case a.nx && a.xx:
		return nil, errNXandXX
	case a.nx && (a.gt || a.lt) || a.gt && a.lt:
		return nil, errGTandLT
	case a.incr && len(rest) > 2:
		return nil, errOneIncr
	}
	return a.parseScores(rest)
}

// option sets an option, and reports whether the word is one.
func (a *addition) option(word string) bool {
	for _, o := range [...]struct {
		name string
		is   *bool
	}{{"NX", &a.nx}, {"XX", &a.xx}, {"GT", &a.gt}, {"LT", &a.lt}, {"CH", &a.ch}, {"INCR", &a.incr}} {
		if redisfmt.EqualFold(word, o.name) {
			*o.is = true
			return true
		}
	}
	return false
}

// parseScores reads the scores before members.
func (a *addition) parseScores(pairs []string) (engine.Run, error) {
	a.scores = slices.Grow(a.room[:0], len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		score, ok := redisfmt.ParseDouble(pairs[i])
		if !ok {
			return nil, errNotFloat
		}
		a.scores = append(a.scores, score)
	}
	return items.OnCreate(kind, a.run), nil
}

func (a *addition) run(x *engine.Context, h *items.Change) (engine.Reply, []string) {
	added, updated := 0, 0
	last := engine.Null
	members := x.Input.Args[a.first+1:]
	for i := range h.ByPage(members, 2) {
		member, score := members[i], a.scores[i/2]
		e, found := h.Get(member)
		was, end := 0.0, int64(0)
		if found {
			was = elements.ScoredOf(e).Score
		}
		if found && a.nx || !found && a.xx {
			continue
		}
		if found && a.incr {
			if score, end = score+was, e.End; math.IsNaN(score) {
				return engine.Fail(errNaN), nil // INCR is alone: nothing was changed
			}
		}
		if found && (a.gt && score <= was || a.lt && score >= was) {
			continue
		}
		last = engine.Double(score)
		switch {
		case !found:
			added++
		case score != was:
			updated++
		case e.End == end:
			continue
		}
		h.Put(member, elements.Scored{Score: score}.Element().Value, end)
	}
	reply := engine.Count(added)
	if a.ch {
		reply = engine.Count(added + updated)
	}
	told := toldZAdd
	if a.incr {
		reply, told = last, toldZIncr
	}
	if added+updated == 0 {
		told = nil
	}
	return reply, told
}

var runZScore = items.OnElements(kind, func(x *engine.Context, h keyspace.Elements, _ bool) engine.Reply {
	return scoreIn(&h, x.Input.Args[2])
})

// scoreIn is the score of a member, or null.
func scoreIn(h *keyspace.Elements, member string) engine.Reply {
	e, found := h.Get(member)
	if !found {
		return engine.Null
	}
	return engine.Double(elements.ScoredOf(e).Score)
}

var runZMScore = items.OnElements(kind, func(x *engine.Context, h keyspace.Elements, _ bool) engine.Reply {
	scores := make([]engine.Reply, 0, len(x.Input.Args)-2)
	for _, member := range x.Input.Args[2:] {
		scores = append(scores, scoreIn(&h, member))
	}
	return engine.Array(scores...)
})

// ranking is the row of ZRANK, or of ZREVRANK.
func ranking(name, summary string, backwards bool) engine.Command {
	plain, withScore := runRank(backwards, false), runRank(backwards, true)
	c := row(name, "key member [WITHSCORE]", "2.0.0", summary, read|fast, "", func(in *engine.Input) (engine.Run, error) {
		switch {
		case len(in.Args) == 3:
			return plain, nil
		case len(in.Args) > 4:
			return nil, engine.Errorf(engine.ErrWrongArity, name)
		case redisfmt.EqualFold(in.Args[3], "WITHSCORE"):
			return withScore, nil
		}
		return nil, engine.ErrSyntax
	})
	c.Differs = "WITHSCORE is of Redis 7.2"
	return c
}

// runRank is the Run of ZRANK, or of ZREVRANK.
func runRank(backwards, withScore bool) engine.Run {
	return items.OnElements(kind, func(x *engine.Context, h keyspace.Elements, _ bool) engine.Reply {
		e, found := h.Get(x.Input.Args[2])
		switch {
		case !found && withScore:
			return engine.NullArray
		case !found:
			return engine.Null
		}
		at, s := elements.ScoredOf(e), h.Sorted()
		rank := s.RankOf(at)
		if backwards {
			rank = s.Len() - 1 - rank
		}
		if withScore {
			return engine.Array(engine.Count(rank), engine.Double(at.Score))
		}
		return engine.Count(rank)
	})
}

// scored is the reply of a list of members with their scores: pairs in RESP3, flat in RESP2.
type scored struct {
	engine.List
	with, nested bool
}

// newScored returns an empty reply. with says that it has the scores.
func newScored(x *engine.Context, with bool) scored {
	return scored{engine.List{Memory: x.Session.Memory}, with, x.Proto() == 3}
}

// add adds a member, and reports whether there is memory for more.
func (l *scored) add(s elements.Scored) (more bool) {
	switch {
	case l.with && l.nested:
		l.Add(engine.Array(engine.Bulk(s.Member), engine.Double(s.Score)))
	case l.with:
		l.Add(engine.Bulk(s.Member))
		l.Add(engine.Double(s.Score))
	default:
		l.Add(engine.Bulk(s.Member))
	}
	return !l.Refused()
}

func parseZRandMember(in *engine.Input) (engine.Run, error) {
	return items.ParseRandom(in, kind, "WITHSCORES", func(e keyspace.Element) engine.Reply {
		return engine.Double(elements.ScoredOf(e).Score)
	})
}

func parseZScan(in *engine.Input) (engine.Run, error) {
	var buf []byte
	return items.ParseScan(in, kind, nil, func(list *engine.List, e keyspace.Element) {
		list.Add(engine.Bulk(e.Field))
		buf = redisfmt.AppendDouble(buf[:0], elements.ScoredOf(e).Score)
		list.Add(engine.Bulk(string(buf)))
	})
}
