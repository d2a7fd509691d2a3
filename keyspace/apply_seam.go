package keyspace

import (
	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/keyspace/replica"
)

type appliedText string

func (t appliedText) AppendTo(dst aof.Commands) aof.Commands {
	dst.Text = append(dst.Text, t...)
	return dst
}

func (ks *Keyspace) appendApplied(batch string, tail replica.Tail) (LSN, error) {
	return ks.journal.Append(appliedText(batch)), nil
}

func (ks *Keyspace) settleApplied(lsn LSN, tail replica.Tail) error {
	return ks.Wait(lsn)
}

func (ks *Keyspace) noteClock(it record.Item) {}
