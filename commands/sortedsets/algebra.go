package sortedsets

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/keyspace/elements"
	"mayfly/redisfmt"
)

// AlgebraCommands combine sorted sets, and sets, whose members count as scored 1.
var AlgebraCommands = []engine.Command{
	combining("zdiff", "", "6.2.0", "Subtract multiple sorted sets", difference),
	storing("zdiffstore", "", "6.2.0", "Subtract multiple sorted sets and store the resulting sorted set in a new key", difference),
	combining("zinter", weighted, "6.2.0", "Intersect multiple sorted sets", intersection),
	{
		Name: "zintercard", Syntax: "numkeys key [key ...] [LIMIT limit]", Since: "7.0.0", Summary: "Intersect multiple sorted sets and return the cardinality of the result",
		Flags: read, Keys: engine.Keys{First: 2, Last: -1, Step: 1}, Counted: true, Walks: engine.Always, Parse: parseInterCard,
	},
	storing("zinterstore", weighted, "2.0.0", "Intersect multiple sorted sets and store the resulting sorted set in a new key", intersection),
	combining("zunion", weighted, "6.2.0", "Add multiple sorted sets", union),
	storing("zunionstore", weighted, "2.0.0", "Add multiple sorted sets and store the resulting sorted set in a new key", union),
}

const weighted = " [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>]"

func combining(name, options, since, summary string, op operation) engine.Command {
	return engine.Command{
		Name: name, Syntax: "numkeys key [key ...]" + options + " [WITHSCORES]", Since: since, Summary: summary,
		Flags: read, Keys: engine.Keys{First: 2, Last: -1, Step: 1}, Counted: true, Walks: engine.Always,
		Parse: func(in *engine.Input) (engine.Run, error) {
			c, err := parseCombination(name, in.Args[1:], options != "", true, false)
			if err != nil {
				return nil, err
			}
			return func(x *engine.Context) engine.Reply {
				o, err := c.operands(x, x.Input.Args[2:])
				if err != nil {
					return engine.Fail(err)
				}
				return x.Compute(int(o.size), func() engine.Reply {
					list := newScored(x, c.withScores)
					for _, s := range sorted(op, &o) {
						if !list.add(s) {
							break
						}
					}
					return list.Array()
				})
			}, nil
		},
	}
}

func storing(name, options, since, summary string, op operation) engine.Command {
	return engine.Command{
		Name: name, Syntax: "destination numkeys key [key ...]" + options, Since: since, Summary: summary,
		Flags: grow, Keys: engine.Keys{First: 3, Last: -1, Step: 1}, Counted: true, Stores: true, Access: "OW update, RO access", Walks: engine.Always,
		Parse: func(in *engine.Input) (engine.Run, error) {
			c, err := parseCombination(name, in.Args[2:], options != "", false, false)
			if err != nil {
				return nil, err
			}
			return items.OnDatabase(func(x *engine.Context, db *keyspace.Container) engine.Reply {
				o, err := c.operands(x, x.Input.Args[3:])
				if err != nil {
					return engine.Fail(err)
				}
				x.Work += o.size
				return items.ReplaceElements(x, db, x.Input.Args[1], kind, name, func(yield func(keyspace.Element) bool) {
					op(&o, func(s elements.Scored) bool { return yield(s.Element()) })
				})
			}), nil
		},
	}
}

func parseInterCard(in *engine.Input) (engine.Run, error) {
	c, err := parseCombination("zintercard", in.Args[1:], false, false, true)
	if err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		o, err := c.operands(x, x.Input.Args[2:])
		if err != nil {
			return engine.Fail(err)
		}
		return x.Compute(int(o.size), func() engine.Reply {
			n := int64(0)
			intersection(&o, func(elements.Scored) bool {
				n++
				return n != c.limit
			})
			return engine.Integer(n)
		})
	}, nil
}

const (
	errWeight = engine.Error("ERR weight value is not a float")
	errLimit  = engine.Error("ERR LIMIT can't be negative")
)

// combination is what a command says of how it combines sorted sets.
type combination struct {
	keys       int
	weights    []float64 // nil: all are 1
	aggregate  func(a, b float64) float64
	withScores bool
	limit      int64 // 0: none
	wrong      error // with the options: as in Redis, keys of another type come first
}

// parseCombination parses what begins with the number of keys.
func parseCombination(name string, args []string, weights, withScores, limit bool) (c combination, err error) {
	n, ok := redisfmt.ParseInt(args[0])
	switch {
	case !ok:
		return c, engine.ErrNotInteger
	case n < 1:
		return c, fmt.Errorf("at least 1 input key is needed for '%s' command", name)
	case n > int64(len(args)-1):
		return c, engine.ErrSyntax
	}
	c.keys, c.aggregate = int(n), sum
	c.wrong = c.parseOptions(args[1+n:], weights, withScores, limit)
	return c, nil
}

// parseOptions parses what follows the keys.
func (c *combination) parseOptions(args []string, weights, withScores, limit bool) error {
	ok := false
	for rest := args; len(rest) > 0; {
		switch word := rest[0]; {
		case weights && redisfmt.EqualFold(word, "WEIGHTS") && len(rest) > c.keys:
			c.weights = make([]float64, c.keys)
			for i := range c.weights {
				if c.weights[i], ok = redisfmt.ParseDouble(rest[1+i]); !ok {
					return errWeight
				}
			}
			rest = rest[1+c.keys:]
		case weights && redisfmt.EqualFold(word, "AGGREGATE") && len(rest) > 1:
			if c.aggregate = aggregateOf(rest[1]); c.aggregate == nil {
				return engine.ErrSyntax
			}
			rest = rest[2:]
		case withScores && redisfmt.EqualFold(word, "WITHSCORES"):
			c.withScores, rest = true, rest[1:]
		case limit && redisfmt.EqualFold(word, "LIMIT") && len(rest) > 1:
			if c.limit, ok = redisfmt.ParseInt(rest[1]); !ok || c.limit < 0 {
				return errLimit
			}
			rest = rest[2:]
		default:
			return engine.ErrSyntax
		}
	}
	return nil
}

func aggregateOf(word string) func(a, b float64) float64 {
	switch {
	case redisfmt.EqualFold(word, "SUM"):
		return sum
	case redisfmt.EqualFold(word, "MIN"):
		return func(a, b float64) float64 { // b may be no number: a counts then
			if b < a {
				return b
			}
			return a
		}
	case redisfmt.EqualFold(word, "MAX"):
		return func(a, b float64) float64 {
			if b > a {
				return b
			}
			return a
		}
	}
	return nil
}

// sum is a sum in which infinities of both signs make 0, as in Redis.
func sum(a, b float64) float64 { return orZero(a + b) }

func orZero(f float64) float64 {
	if math.IsNaN(f) {
		return 0
	}
	return f
}

// operands are sorted sets for an operation: what it needs no locks for.
type operands struct {
	sets      []operand
	size      int64 // bytes
	aggregate func(a, b float64) float64
}

// operand is a sorted set, or a set, with its weight.
type operand struct {
	keyspace.Elements // a snapshot
	length            int
	weight            float64
	scored            bool
}

// score returns the weighted score of an element: no number for an infinite one of weight 0.
func (o *operand) score(e keyspace.Element) float64 {
	if o.scored {
		return elements.ScoredOf(e).Score * o.weight
	}
	return o.weight
}

// operands returns those under keys.
func (c *combination) operands(x *engine.Context, keys []string) (o operands, err error) {
	o.aggregate = c.aggregate
	snapshots := make(map[string]operand, c.keys)
	for i, key := range keys[:c.keys] {
		one, known := snapshots[key]
		if !known {
			db, err := x.Database()
			if err != nil {
				return o, err
			}
			h, is, found := x.Tx.Elements(db, key)
			if x.CountRead(db, key, found); found && is != kind && is != keyspace.SetKind {
				return o, engine.ErrWrongType
			}
			one = operand{Elements: h.Snapshot(), length: h.Len(), scored: is == kind}
			o.size += h.Size()
			snapshots[key] = one
		}
		if one.weight = 1; c.weights != nil {
			one.weight = c.weights[i]
		}
		o.sets = append(o.sets, one)
	}
	return o, c.wrong
}

// smallestFirst returns the sets in the order of Redis, on which sums of fractions and of infinities depend.
func (o *operands) smallestFirst() []operand {
	return slices.SortedStableFunc(slices.Values(o.sets), func(a, b operand) int { return cmp.Compare(a.length, b.length) })
}

// operation calls add with the members of the result, each once, until add returns false.
type operation func(o *operands, add func(elements.Scored) (more bool))

func union(o *operands, add func(elements.Scored) bool) {
	scores := make(map[string]float64)
	for _, set := range o.smallestFirst() {
		for e := range set.All() {
			score := orZero(set.score(e))
			if before, found := scores[e.Field]; found {
				score = o.aggregate(before, score)
			}
			scores[e.Field] = score
		}
	}
	for member, score := range scores {
		if !add(elements.Scored{Member: member, Score: score}) {
			return
		}
	}
}

// intersection walks the smallest set. As in Redis only its own scores become 0 if they are no number: those
// of others make the sum 0, and no minimum and no maximum.
func intersection(o *operands, add func(elements.Scored) bool) {
	sets := o.smallestFirst()
	for e := range sets[0].All() {
		score, everywhere := orZero(sets[0].score(e)), true
		for i := 1; i < len(sets) && everywhere; i++ {
			var other keyspace.Element
			if other, everywhere = sets[i].Get(e.Field); everywhere {
				score = o.aggregate(score, sets[i].score(other))
			}
		}
		if everywhere && !add(elements.Scored{Member: e.Field, Score: score}) {
			return
		}
	}
}

// difference looks the members of the first set up in the others.
func difference(o *operands, add func(elements.Scored) bool) {
	first, others := &o.sets[0], o.sets[1:]
	for e := range first.All() {
		elsewhere := slices.ContainsFunc(others, func(o operand) bool { _, found := o.Get(e.Field); return found })
		if !elsewhere && !add(elements.Scored{Member: e.Field, Score: first.score(e)}) {
			return
		}
	}
}

// sorted returns the members of a result in their order.
func sorted(op operation, o *operands) (all []elements.Scored) {
	op(o, func(s elements.Scored) bool {
		all = append(all, s)
		return true
	})
	slices.SortFunc(all, elements.Scored.Compare)
	return all
}
