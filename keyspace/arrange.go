package keyspace

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
)

// An arranger brings what was captured of partitions into the order in which the stores are to learn it:
//
//  1. deletes, for what is in a table now is newer than what was removed from it;
//  2. what is new to the store, shuffled (loosen.go says why);
//  3. what the store has already and is only overwritten, which splits no nodes of its tree.
//
// The first and the last come in the order of their keys: what the way down the tree looks at is then
// still in the processor's cache from the key before, where at random it would wait for memory a dozen
// times. The zero value is ready; it keeps memory for the next partition.
type arranger struct {
	heads []keyHead
	ops   []op
}

func (a *arranger) arrange(ops []op) {
	deleted := gather(ops, func(o *op) bool { return o.del })
	fresh := gather(ops[deleted:], func(o *op) bool { return !o.known })
	a.sort(ops[:deleted], 0)
	shuffle(ops[deleted:][:fresh])
	a.sort(ops[deleted+fresh:], 0)
}

// gather moves the operations that are to come first to the front and says how many there are.
func gather(ops []op, first func(*op) bool) (n int) {
	for i := range ops {
		if first(&ops[i]) {
			ops[n], ops[i] = ops[i], ops[n]
			n++
		}
	}
	return n
}

func shuffle(ops []op) {
	rand.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
}

// keyHead is the first bytes of a key beyond what all keys have in common, as a number of the same order,
// and whose they are. It mostly tells all, and to compare it no key needs to be looked at.
type keyHead struct {
	bytes uint64
	op    int32
}

const headSize = 8

// sort sorts by the keys, whose first so many bytes are known to be the same.
func (a *arranger) sort(ops []op, same int) {
	same = commonPrefix(ops, same)
	base := len(a.heads)
	for i := range ops {
		var head [headSize]byte
		copy(head[:], ops[i].key[same:])
		a.heads = append(a.heads, keyHead{binary.BigEndian.Uint64(head[:]), int32(i)})
	}
	heads := a.heads[base:]
	slices.SortFunc(heads, func(x, y keyHead) int { return cmp.Compare(x.bytes, y.bytes) })
	a.ops = append(a.ops[:0], ops...)
	for i, head := range heads {
		ops[i] = a.ops[head.op]
	}
	for from, to := 0, 0; from < len(ops); from = to {
		for to = from + 1; to < len(ops) && heads[to].bytes == heads[from].bytes; to++ {
		}
		if to-from > 1 {
			a.sortAlike(ops[from:to], same+headSize)
		}
	}
	a.heads = a.heads[:base]
}

// sortAlike is sort for keys with the same head, which ends after so many bytes.
func (a *arranger) sortAlike(ops []op, same int) {
	if slices.ContainsFunc(ops, func(o op) bool { return len(o.key) < same }) { // zeros stand in for what it has not
		slices.SortFunc(ops, func(x, y op) int { return strings.Compare(x.key, y.key) })
		return
	}
	a.sort(ops, same)
}

// commonPrefix is the length of what all keys begin with, which is no less than n.
func commonPrefix(ops []op, n int) int {
	if len(ops) == 0 {
		return 0
	}
	first, most := ops[0].key, len(ops[0].key)
	for _, o := range ops[1:] {
		most = min(most, len(o.key))
		for i := n; i < most; i++ {
			if o.key[i] != first[i] {
				most = i
			}
		}
	}
	return most
}
