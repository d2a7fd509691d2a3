package keyspace

import (
	"fmt"
	"testing"
	"time"
)

// idsApart returns ids in different partitions.
func idsApart(ks *Keyspace) (a, b string) {
	a, b = "a", "b"
	for i := 0; ks.partitionOf(a) == ks.partitionOf(b); i++ {
		b = fmt.Sprint("b", i)
	}
	if ks.partitionOf(a).Number > ks.partitionOf(b).Number {
		a, b = b, a
	}
	return a, b
}

// A transaction that is marked as long is not waited for, and nothing stays locked then.
func TestTryBeginDoesNotWait(t *testing.T) {
	t.Parallel()
	ks := open(t).Keyspace
	a, b := idsApart(ks)
	var holder, tx Tx
	ks.BeginKey(&holder, b)
	holder.MarkLong(true)
	if ks.TryBeginKeys(&tx, []string{b}) || ks.TryBeginKeys(&tx, []string{b, a}) {
		t.Fatal("two transactions hold the same lock")
	}
	if !ks.TryBeginKeys(&tx, []string{a}) {
		t.Fatal("a partition is locked that no transaction has")
	}
	tx.Close()
	holder.Close()
	if !ks.TryBeginKeys(&tx, []string{a, b}) {
		t.Fatal("the mark outlasts its transaction")
	}
	tx.Close()
	if !ks.TryBeginKeys(&tx, []string{b}) {
		t.Fatal("the mark outlasts its transaction")
	}
	tx.Close()
}

// A transaction that is not marked is waited for.
func TestTryBeginWaitsForShortTransactions(t *testing.T) {
	t.Parallel()
	ks := open(t).Keyspace
	var holder, tx Tx
	ks.BeginKey(&holder, "k")
	begun := make(chan bool)
	go func() { begun <- ks.TryBeginKeys(&tx, []string{"k"}) }()
	select {
	case <-begun:
		t.Fatal("it does not wait")
	case <-time.After(10 * time.Millisecond):
	}
	holder.Close()
	if !<-begun {
		t.Fatal("it has not begun")
	}
	tx.Close()
}
