package lease

import (
	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
)

// Record is the record of the clock. A journal takes it as a group of its own.
type Record string

// NewRecord returns the record of a time in ms and an epoch of versions.
func NewRecord(ms int64, epoch uint64) Record {
	return Record(record.Append(nil, record.ClockKey, record.Item{Kind: record.ClockKind, TS: ms, Version: epoch}))
}

// AppendTo appends the record as a command.
func (r Record) AppendTo(dst aof.Commands) aof.Commands {
	dst.Set(record.ClockKey, string(r), "")
	return dst
}
