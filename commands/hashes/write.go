package hashes

import (
	"strconv"
	"strings"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

const (
	errHashInteger  = engine.Error("ERR hash value is not an integer")
	errHashFloat    = engine.Error("ERR hash value is not a float")
	errNaN          = engine.Error("ERR value is NaN or Infinity")
	eventHSet       = "hset"
	eventHDel       = "hdel"
	eventHExpire    = "hexpire"
	eventHPersist   = "hpersist"
	eventHIncr      = "hincrby"
	eventHIncrFloat = "hincrbyfloat"
)

// change is a change of the hash of a key under way.
type change struct {
	keyspace.HashEdit
	x   *engine.Context
	c   *keyspace.Container
	key string
}

// onChange returns the Run of a command that changes a hash: do makes the changes and returns the reply and
// the events.
func onChange(do func(x *engine.Context, h *change) (engine.Reply, []string)) engine.Run {
	return func(x *engine.Context) engine.Reply {
		c, err := x.Database()
		if err != nil {
			return engine.Fail(err)
		}
		h := change{x: x, c: c, key: x.Input.Args[1]}
		var kind keyspace.Kind
		if h.HashEdit, kind = x.Tx.EditHash(c, h.key); kind != 0 && kind != keyspace.HashKind {
			return engine.Fail(engine.ErrWrongType)
		}
		reply, told := do(x, &h)
		h.close(told)
		return reply
	}
}

// onCreate is onChange of a command that creates what is missing. Before the first hash of the folder it
// prepares the folder, without locks.
func onCreate(do func(x *engine.Context, h *change) (engine.Reply, []string)) engine.Run {
	run := onChange(do)
	return func(x *engine.Context) engine.Reply {
		ks := x.Engine.Keyspace()
		if ks.CollectionsAllowed() {
			return run(x)
		}
		if c, err := x.Database(); err != nil {
			return engine.Fail(err)
		} else if _, taken := x.Tx.Get(c, x.Input.Args[1]); taken {
			return run(x) // it is no hash
		}
		if !x.Queued {
			x.Outside = func() (reply engine.Reply, again bool) {
				if err := ks.AllowCollections(); err != nil {
					return engine.Fail(err), false
				}
				return reply, true
			}
			return engine.Reply{}
		}
		if err := ks.AllowCollections(); err != nil {
			return engine.Fail(err)
		}
		return run(x)
	}
}

// close ends the change and publishes its events.
func (h *change) close(told []string) {
	isNew := !h.Exists()
	gone := h.Close()
	if len(told) == 0 {
		return
	}
	if isNew {
		h.x.Notify(events.New, h.c, h.key)
	}
	for _, e := range told {
		h.x.Notify(events.Hash(e), h.c, h.key)
	}
	if gone {
		h.x.Notify(events.Del, h.c, h.key)
	}
}

// put sets a field.
func (h *change) put(field, value string, end int64) (isNew bool) {
	h.x.Work += int64(len(field) + len(value))
	return h.Set(keyspace.Element{Field: field, Value: value, End: end})
}

// parseHSet parses HSET and HMSET.
func parseHSet(in *engine.Input) (engine.Run, error) {
	name := strings.ToLower(in.Args[0])
	if len(in.Args)%2 != 0 {
		return nil, engine.Errorf(engine.ErrWrongArity, name)
	}
	return onCreate(func(x *engine.Context, h *change) (engine.Reply, []string) {
		added := 0
		for i := 2; i < len(x.Input.Args); i += 2 {
			if h.put(x.Input.Args[i], x.Input.Args[i+1], 0) {
				added++
			}
		}
		if name == "hmset" {
			return engine.OK, []string{eventHSet}
		}
		return engine.Count(added), []string{eventHSet}
	}), nil
}

var runHSetNX = onCreate(func(x *engine.Context, h *change) (engine.Reply, []string) {
	if _, found := h.Get(x.Input.Args[2]); found {
		return engine.Flag(false), nil
	}
	h.put(x.Input.Args[2], x.Input.Args[3], 0)
	return engine.Flag(true), []string{eventHSet}
})

var runHDel = onChange(func(x *engine.Context, h *change) (engine.Reply, []string) {
	deleted := 0
	for _, field := range x.Input.Args[2:] {
		if h.Delete(field) {
			deleted++
		}
	}
	if deleted == 0 {
		return engine.Count(0), nil
	}
	return engine.Count(deleted), []string{eventHDel}
})

func parseHIncrBy(in *engine.Input) (engine.Run, error) {
	by, ok := redisfmt.ParseInt(in.Args[3])
	if !ok {
		return nil, engine.ErrNotInteger
	}
	return onCreate(func(x *engine.Context, h *change) (engine.Reply, []string) {
		var n int64
		e, found := h.Get(x.Input.Args[2])
		if found {
			if n, ok = redisfmt.ParseInt(e.Value); !ok {
				return engine.Fail(errHashInteger), nil
			}
		}
		sum, ok := redisfmt.AddInt(n, by)
		if !ok {
			return engine.Fail(engine.ErrOverflow), nil
		}
		h.put(x.Input.Args[2], strconv.FormatInt(sum, 10), e.End)
		return engine.Integer(sum), []string{eventHIncr}
	}), nil
}

func parseHIncrByFloat(in *engine.Input) (engine.Run, error) {
	by, ok := redisfmt.ParseFloat(in.Args[3])
	switch {
	case !ok:
		return nil, engine.ErrNotFloat
	case by.IsInf():
		return nil, errNaN
	}
	return onCreate(func(x *engine.Context, h *change) (engine.Reply, []string) {
		text := "0"
		e, found := h.Get(x.Input.Args[2])
		if found {
			text = e.Value
		}
		n, ok := redisfmt.ParseFloat(text)
		if !ok {
			return engine.Fail(errHashFloat), nil
		}
		sum, ok := redisfmt.AddFloat(n, by)
		if !ok {
			return engine.Fail(engine.ErrNotFinite), nil
		}
		text = redisfmt.FormatFloat(sum)
		h.put(x.Input.Args[2], text, e.End)
		return engine.Bulk(text), []string{eventHIncrFloat}
	}), nil
}
