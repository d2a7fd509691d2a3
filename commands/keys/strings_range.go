package keys

import (
	"unsafe"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// The commands on parts of strings.
var RangeCommands = []engine.Command{
	getRangeRow("getrange", "2.4.0"),
	{
		Name: "setrange", Syntax: "key offset value", Since: "2.2.0",
		Summary: "Overwrite part of a string at key starting at the specified offset",
		Flags:   engine.Write | engine.DenyOOM, Keys: engine.OneKey, Access: "RW update", Walks: engine.Always, Parse: parseSetRange,
	},
	getRangeRow("substr", "1.0.0"), // the old name
}

func getRangeRow(name, since string) engine.Command {
	return engine.Command{
		Name: name, Syntax: "key start end", Since: since, Summary: "Get a substring of the string stored at a key",
		Flags: engine.ReadOnly, Keys: engine.OneKey, Parse: parseGetRange,
	}
}

func parseGetRange(in *engine.Input) (engine.Run, error) {
	key := in.Args[1]
	start, ok1 := redisfmt.ParseInt(in.Args[2])
	end, ok2 := redisfmt.ParseInt(in.Args[3])
	if !ok1 || !ok2 {
		return nil, engine.ErrNotInteger
	}
	return func(x *engine.Context) engine.Reply {
		_, it, _, err := readPlain(x, key)
		if err != nil {
			return engine.Fail(err)
		}
		return engine.Bulk(substring(it.Body, start, end))
	}, nil
}

// substring returns the bytes of s from start to end, both included. Negative positions count from the
// end of s.
func substring(s string, start, end int64) string {
	length := int64(len(s))
	if start < 0 && end < 0 && start > end { // below, both might become 0
		return ""
	}
	if start < 0 {
		start = max(length+start, 0)
	}
	if end < 0 {
		end = max(length+end, 0)
	}
	end = min(end, length-1)
	if start > end {
		return ""
	}
	return s[start : end+1]
}

func parseSetRange(in *engine.Input) (engine.Run, error) {
	key, value, maxSize := in.Args[1], in.Args[3], in.MaxValue
	offset, ok := redisfmt.ParseInt(in.Args[2])
	switch {
	case !ok:
		return nil, engine.ErrNotInteger
	case offset < 0:
		return nil, errOffset
	}
	e := items.EditOf(func(s string) string { return overwrite(s, int(offset), value) })
	return func(x *engine.Context) engine.Reply {
		c, it, found, err := getPlain(x, key)
		switch {
		case err != nil:
			return engine.Fail(err)
		case value == "": // creates no missing key
			return engine.Count(len(it.Body))
		case offset > int64(maxSize-len(value)):
			return engine.Fail(errTooLong)
		}
		if !e.Ready(x, items.DocTarget{Container: c, ID: key, Item: it, Found: found}, len(value)) {
			return engine.Reply{}
		}
		x.Put(c, key, keyspace.Plain, e.Doc.JSON, it.ExpireAt, events.SetRange)
		x.Tx.SetEncoding(c, key, keyspace.Raw)
		return engine.Count(len(e.Doc.JSON))
	}, nil
}

// overwrite returns s with value at offset. Zero bytes fill the gap after a shorter s.
func overwrite(s string, offset int, value string) string {
	b := make([]byte, max(len(s), offset+len(value)))
	copy(b, s)
	copy(b[offset:], value)
	return unsafe.String(unsafe.SliceData(b), len(b)) // nobody changes b any more
}
