package commands

import (
	"unsafe"

	"mayfly/commands/redisfmt"
	"mayfly/keyspace"
)

// The commands on parts of strings.
var rangeCommands = []Command{
	getRangeRow("getrange", "2.4.0"),
	{
		Name: "setrange", Syntax: "key offset value", Since: "2.2.0",
		Summary: "Overwrite part of a string at key starting at the specified offset",
		Flags:   Write | DenyOOM, Keys: OneKey, Access: "RW update", Walks: always, Parse: parseSetRange,
	},
	getRangeRow("substr", "1.0.0"), // the old name
}

func getRangeRow(name, since string) Command {
	return Command{
		Name: name, Syntax: "key start end", Since: since, Summary: "Get a substring of the string stored at a key",
		Flags: ReadOnly, Keys: OneKey, Parse: parseGetRange,
	}
}

func parseGetRange(in *Input) (Run, error) {
	key := in.Args[1]
	start, ok1 := redisfmt.ParseInt(in.Args[2])
	end, ok2 := redisfmt.ParseInt(in.Args[3])
	if !ok1 || !ok2 {
		return nil, errNotInteger
	}
	return func(x *Context) Reply {
		_, it, _, err := x.readPlain(key)
		if err != nil {
			return Fail(err)
		}
		return Bulk(substring(it.Body, start, end))
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

func parseSetRange(in *Input) (Run, error) {
	key, value, maxSize := in.Args[1], in.Args[3], in.MaxValue
	offset, ok := redisfmt.ParseInt(in.Args[2])
	switch {
	case !ok:
		return nil, errNotInteger
	case offset < 0:
		return nil, errOffset
	}
	e := editOf(func(s string) string { return overwrite(s, int(offset), value) })
	return func(x *Context) Reply {
		c, it, found, err := x.getPlain(key)
		switch {
		case err != nil:
			return Fail(err)
		case value == "": // creates no missing key
			return Count(len(it.Body))
		case offset > int64(maxSize-len(value)):
			return Fail(errTooLong)
		}
		if !e.ready(x, docTarget{container: c, id: key, item: it, found: found}, len(value)) {
			return Reply{}
		}
		x.put(c, key, keyspace.Plain, e.doc.JSON, it.ExpireAt, eventSetRange)
		x.Tx.SetEncoding(c, key, keyspace.Raw)
		return Count(len(e.doc.JSON))
	}, nil
}

// overwrite returns s with value at offset. Zero bytes fill the gap after a shorter s.
func overwrite(s string, offset int, value string) string {
	b := make([]byte, max(len(s), offset+len(value)))
	copy(b, s)
	copy(b[offset:], value)
	return unsafe.String(unsafe.SliceData(b), len(b)) // nobody changes b any more
}
