package hashes

import (
	"strconv"
	"strings"

	"mayfly/commands/engine"
	"mayfly/commands/items"
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

// onChange returns the Run of a command that changes a hash: see [items.OnChange].
func onChange(do func(x *engine.Context, h *items.Change) (engine.Reply, []string)) engine.Run {
	return items.OnChange(keyspace.HashKind, do)
}

// onCreate is onChange of a command that creates what is missing.
func onCreate(do func(x *engine.Context, h *items.Change) (engine.Reply, []string)) engine.Run {
	return items.OnCreate(keyspace.HashKind, do)
}

// parseHSet parses HSET and HMSET.
func parseHSet(in *engine.Input) (engine.Run, error) {
	if len(in.Args)%2 != 0 {
		return nil, engine.Errorf(engine.ErrWrongArity, strings.ToLower(in.Args[0]))
	}
	return runHSet, nil
}

var toldHSet, toldHIncr = []string{eventHSet}, []string{eventHIncr}

var runHSet = onCreate(func(x *engine.Context, h *items.Change) (engine.Reply, []string) {
	added, pairs := 0, x.Input.Args[2:]
	for i := range h.ByPage(pairs, 2) {
		if h.Put(pairs[i], pairs[i+1], 0) {
			added++
		}
	}
	if redisfmt.EqualFold(x.Input.Args[0], "hmset") {
		return engine.OK, toldHSet
	}
	return engine.Count(added), toldHSet
})

var runHSetNX = onCreate(func(x *engine.Context, h *items.Change) (engine.Reply, []string) {
	if _, found := h.Get(x.Input.Args[2]); found {
		return engine.Flag(false), nil
	}
	h.Put(x.Input.Args[2], x.Input.Args[3], 0)
	return engine.Flag(true), toldHSet
})

func parseHIncrBy(in *engine.Input) (engine.Run, error) {
	by, ok := redisfmt.ParseInt(in.Args[3])
	if !ok {
		return nil, engine.ErrNotInteger
	}
	return onCreate(func(x *engine.Context, h *items.Change) (engine.Reply, []string) {
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
		h.Put(x.Input.Args[2], strconv.FormatInt(sum, 10), e.End)
		return engine.Integer(sum), toldHIncr
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
	return onCreate(func(x *engine.Context, h *items.Change) (engine.Reply, []string) {
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
		h.Put(x.Input.Args[2], text, e.End)
		return engine.Bulk(text), []string{eventHIncrFloat}
	}), nil
}
