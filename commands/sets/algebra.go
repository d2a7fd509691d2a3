package sets

import (
	"cmp"
	"slices"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// operands are sets for an operation: what it needs no locks for.
type operands struct {
	sets    []keyspace.Elements // snapshots
	lengths []int
	size    int64 // bytes
	missing bool  // one of them is empty
}

// operation calls add with the members of the result, each once, until add returns false.
type operation func(o *operands, add func(keyspace.Element) (more bool))

// operandsOf returns the sets under keys. One that is given again does not count, but for the first, which a
// difference from itself empties.
func operandsOf(x *engine.Context, keys []string) (o operands, err error) {
	seen := make(map[string]int, len(keys))
	for _, key := range keys {
		_, h, found, err := items.GetElements(x, key, keyspace.SetKind)
		switch {
		case err != nil:
			return o, err
		case !found:
			o.missing = true
		}
		if seen[key]++; seen[key] > 2 || seen[key] == 2 && key != keys[0] {
			continue
		}
		o.sets, o.lengths, o.size = append(o.sets, h.Snapshot()), append(o.lengths, h.Len()), o.size+h.Size()
	}
	return o, nil
}

func union(o *operands, add func(keyspace.Element) bool) {
	seen := map[string]bool{}
	for i := range o.sets {
		for e := range o.sets[i].All() {
			if len(o.sets) > 1 {
				if seen[e.Field] {
					continue
				}
				seen[e.Field] = true
			}
			if !add(e) {
				return
			}
		}
	}
}

// intersection walks the smallest set.
func intersection(o *operands, add func(keyspace.Element) bool) {
	if o.missing {
		return
	}
	order := make([]int, len(o.sets))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(o.lengths[a], o.lengths[b]) })
	for e := range o.sets[order[0]].All() {
		if !slices.ContainsFunc(order[1:], func(i int) bool { _, found := o.sets[i].Get(e.Field); return !found }) && !add(e) {
			return
		}
	}
}

// difference looks members of the first set up in the others, or walks all if that costs less, as Redis does.
func difference(o *operands, add func(keyspace.Element) bool) {
	first, others := &o.sets[0], o.sets[1:]
	sum := 0
	for _, n := range o.lengths {
		sum += n
	}
	if o.lengths[0]*len(o.sets)/2 <= sum {
		for e := range first.All() {
			if !slices.ContainsFunc(others, func(h keyspace.Elements) bool { _, found := h.Get(e.Field); return found }) && !add(e) {
				return
			}
		}
		return
	}
	left := make(map[string]bool, o.lengths[0])
	for e := range first.All() {
		left[e.Field] = true
	}
	for i := range others {
		for e := range others[i].All() {
			delete(left, e.Field)
		}
	}
	for e := range first.All() {
		if left[e.Field] && !add(e) {
			return
		}
	}
}

// combine returns the Parse of a command that replies with the result of an operation on the sets under its
// keys.
func combine(op operation) func(*engine.Input) (engine.Run, error) {
	return engine.NoParse(func(x *engine.Context) engine.Reply {
		o, err := operandsOf(x, x.Input.Args[1:])
		if err != nil {
			return engine.Fail(err)
		}
		return x.Compute(int(o.size), func() engine.Reply {
			list := engine.List{Memory: x.Session.Memory}
			op(&o, func(e keyspace.Element) bool {
				list.Add(engine.Bulk(e.Field))
				return !list.Refused()
			})
			return list.Set()
		})
	})
}

func combining(name, summary string, op operation) engine.Command {
	return engine.Command{
		Name: name, Syntax: "key [key ...]", Since: "1.0.0", Summary: summary, Flags: read, Keys: engine.AllKeys, Tips: anyhow,
		Walks: engine.Always, Parse: combine(op),
	}
}

func storing(name, access, summary string, op operation) engine.Command {
	return engine.Command{
		Name: name, Syntax: "destination key [key ...]", Since: "1.0.0", Summary: summary, Flags: grow, Keys: engine.AllKeys,
		Access: access + " update, RO access", Walks: engine.Always, Parse: engine.NoParse(items.OnDatabase(
			func(x *engine.Context, c *keyspace.Container) engine.Reply {
				o, err := operandsOf(x, x.Input.Args[2:])
				if err != nil {
					return engine.Fail(err)
				}
				x.Work += o.size
				return items.ReplaceElements(x, c, x.Input.Args[1], keyspace.SetKind, name, func(yield func(keyspace.Element) bool) {
					op(&o, func(e keyspace.Element) bool { return yield(keyspace.Element{Field: e.Field}) })
				})
			})),
	}
}

const (
	errNumKeys  = engine.Error("ERR numkeys should be greater than 0")
	errTooMany  = engine.Error("ERR Number of keys can't be greater than number of args")
	errNegative = engine.Error("ERR LIMIT can't be negative")
)

func parseSInterCard(in *engine.Input) (engine.Run, error) {
	n, ok := redisfmt.ParseInt(in.Args[1])
	switch {
	case !ok || n < 1:
		return nil, errNumKeys
	case n > int64(len(in.Args)-2):
		return nil, errTooMany
	}
	limit := int64(0)
	for rest := in.Args[2+n:]; len(rest) > 0; rest = rest[2:] {
		if len(rest) < 2 || !redisfmt.EqualFold(rest[0], "LIMIT") {
			return nil, engine.ErrSyntax
		}
		if limit, ok = redisfmt.ParseInt(rest[1]); !ok || limit < 0 {
			return nil, errNegative
		}
	}
	return func(x *engine.Context) engine.Reply {
		o, err := operandsOf(x, x.Input.Args[2:2+n])
		if err != nil {
			return engine.Fail(err)
		}
		return x.Compute(int(o.size), func() engine.Reply {
			count := int64(0)
			intersection(&o, func(keyspace.Element) bool {
				count++
				return count != limit
			})
			return engine.Integer(count)
		})
	}, nil
}
