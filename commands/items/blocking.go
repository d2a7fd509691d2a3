package items

import (
	"math"
	"math/big"

	"mayfly/commands/engine"
	"mayfly/commands/waiting"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

const (
	errTimeoutFloat    = engine.Error("ERR timeout is not a float or out of range")
	errTimeoutNegative = engine.Error("ERR timeout is negative")
)

// ParseSeconds reads the time for which a command waits, in seconds, and returns it in ms. 0: for ever.
func ParseSeconds(text string) (ms int64, err error) {
	f, ok := redisfmt.ParseFloat(text)
	if !ok {
		return 0, errTimeoutFloat
	}
	ms, exact := f.Mul(f, big.NewFloat(1000)).Int64()
	if ms < 0 || ms == math.MaxInt64 { // as in Redis, what is too large counts as negative
		return 0, errTimeoutNegative
	}
	if exact == big.Below { // as in Redis, a part of a ms counts as one
		ms++
	}
	return ms, nil
}

// Taking is the Run of a command that takes elements from the first of its keys that has some, and waits for
// a time in ms if none has: 0 for ever, negative not at all. take returns false if a key has none; one that
// has got another kind meanwhile counts as such. Clients that wait for a kind under a key are served in the
// order in which they came.
func Taking(keys []string, kind keyspace.Kind, ms int64, take func(x *engine.Context, key string) (reply engine.Reply, taken bool)) engine.Run {
	return func(x *engine.Context) engine.Reply {
		if reply, over := x.WaitEnded(); over {
			return reply
		}
		if ms >= 0 && x.HeldByClock() {
			return engine.Reply{}
		}
		may := keys
		if ms >= 0 && !x.Queued {
			may = x.Turns(keys, kind) // who came first is woken, but may not have run yet
		}
		for _, key := range keys {
			if len(may) > 0 && may[0] == key {
				may = may[1:]
				if reply, taken := take(x, key); taken {
					return reply
				}
			} else if !x.HasWaited() {
				if err := notOther(x, key, kind); err != nil {
					return engine.Fail(err)
				}
			}
		}
		if ms < 0 || x.Queued {
			return engine.NullArray
		}
		database := x.Session.Database
		return x.Block(engine.Wait{Time: ms, MinIdle: -1, Oldest: math.MaxInt64, Lines: func() (lines []waiting.Key) {
			seen := make(map[string]bool, len(keys))
			for _, key := range keys {
				if !seen[key] {
					seen[key] = true
					lines = append(lines, waiting.LineOfKey(database, key, kind))
				}
			}
			return lines
		}})
	}
}

// notOther returns an error if there is something of another kind under a key.
func notOther(x *engine.Context, key string, kind keyspace.Kind) error {
	c, err := x.Database()
	if err != nil {
		return err
	}
	if _, is, found := x.Tx.Elements(c, key); found && is != kind {
		return engine.ErrWrongType
	}
	return nil
}

// ServedLater says how commands that wait for an element differ from those of Redis.
const ServedLater = "Who waits is served after the command that brings an element, from the first key that has one by then: see [collections](collections.md#clients-that-wait)"

const (
	errNumKeys = engine.Error("ERR numkeys should be greater than 0")
	errCount   = engine.Error("ERR count should be greater than 0")
)

// ParseTaking parses "numkeys key [key …] <first | second> [COUNT count]".
func ParseTaking(args []string, first, second string) (keys []string, isSecond bool, count int64, err error) {
	n, ok := redisfmt.ParseInt(args[0])
	switch {
	case !ok || n < 1:
		return nil, false, 0, errNumKeys
	case n >= int64(len(args)-1):
		return nil, false, 0, engine.ErrSyntax
	}
	keys, rest := args[1:1+n], args[1+n:]
	if isSecond = redisfmt.EqualFold(rest[0], second); !isSecond && !redisfmt.EqualFold(rest[0], first) {
		return nil, false, 0, engine.ErrSyntax
	}
	count = 1
	if len(rest) > 2 && redisfmt.EqualFold(rest[1], "COUNT") {
		if count, ok = redisfmt.ParseInt(rest[2]); !ok || count < 1 {
			return nil, false, 0, errCount
		}
		rest = rest[2:]
	}
	if len(rest) > 1 {
		return nil, false, 0, engine.ErrSyntax
	}
	return keys, isSecond, count, nil
}

// AfterTimeout returns the Parse of a command whose first argument is the time for which it waits. parse
// parses the others; as in Redis, its errors come first.
func AfterTimeout(parse func(args []string, ms int64) (engine.Run, error)) func(*engine.Input) (engine.Run, error) {
	return func(in *engine.Input) (engine.Run, error) {
		ms, wrong := ParseSeconds(in.Args[1])
		run, err := parse(in.Args[2:], ms)
		if err == nil {
			err = wrong
		}
		return run, err
	}
}
