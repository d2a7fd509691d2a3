package memtable

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"unsafe"
)

// Seed makes hashes of ids that no client can foresee. Equal seeds make equal hashes, also after a restart.
type Seed [2]uint64

// Check returns a number that tells a seed, and the way in which it is used, from others.
func (k Seed) Check() uint32 { return k.hash("mayfly: a check of the seed") }

// hash returns the hash of an id: wyhash with a secret seed of 128 bits, folded to 32 bits.
func (k *Seed) hash(id string) uint32 {
	const m1, m2 = 0xa0761d6478bd642f, 0xe7037ed1a0b428db
	seed, secret := k[0]^m1, k[1]^m2
	var a, b uint64
	p, n := unsafe.Pointer(unsafe.StringData(id)), len(id)
	switch {
	case n > 16:
		for end := unsafe.Add(p, n-16); uintptr(p) < uintptr(end); p = unsafe.Add(p, 16) {
			seed = mix(load64(p, 0)^secret, load64(p, 8)^seed)
		}
		p = unsafe.Pointer(unsafe.StringData(id))
		a, b = load64(p, n-16), load64(p, n-8)
	case n >= 8:
		a, b = load64(p, 0), load64(p, n-8)
	case n >= 4:
		a, b = uint64(load32(p, 0)), uint64(load32(p, n-4))
	case n > 0:
		a = uint64(id[0])<<16 | uint64(id[n>>1])<<8 | uint64(id[n-1])
	}
	high, low := bits.Mul64(a^secret, b^seed)
	h := mix(low^k[0]^uint64(n), high^secret)
	return uint32(h ^ h>>32)
}

// mix folds the product of two numbers.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

func load64(p unsafe.Pointer, at int) uint64 { return *(*uint64)(unsafe.Add(p, at)) }
func load32(p unsafe.Pointer, at int) uint32 { return *(*uint32)(unsafe.Add(p, at)) }

// InHashOrder fills list with entries behind that of an id, and returns how many. The order is that of the
// hashes, read from their lowest bit on, and then of ids. A bucket of the index holds neighbours in it,
// however many buckets there are. So the order survives writes, growth and restarts. The id need not be there
// any more. Begin starts at the first entry.
func (t *Table) InHashOrder(after string, begin bool, list []*Entry) (n int) {
	if t.index.n == 0 {
		return 0
	}
	at := uint64(0) // in the order; behind 32 bits at the end
	if !begin {
		at = uint64(bits.Reverse32(t.seed.hash(after)))
	}
	after32 := uint32(at)
	var heads [64]Handle
	for at>>32 == 0 && n < len(list) {
		// The heads of several chains are read ahead, so that the cache misses overlap.
		ahead := 0
		seen := uint32(0)
		for ; at>>32 == 0 && ahead < min(len(heads), len(list)-n+1); ahead++ {
			bucket, width := t.index.bucketOf(bits.Reverse32(uint32(at)))
			heads[ahead] = *t.index.buckets.at(bucket)
			at = (at &^ (width - 1)) + width
		}
		for _, h := range heads[:ahead] {
			if h != 0 {
				seen += t.slab.at(h).hash
			}
		}
		t.arena.seen += seen
		for _, h := range heads[:ahead] {
			from := n
			var more []*Entry // of a chain that does not fit
			for ; h != 0; h = t.slab.at(h).next {
				e := t.slab.at(h)
				place := bits.Reverse32(e.hash)
				if !begin && (place < after32 || place == after32 && t.ID(e) <= after) {
					continue
				}
				if n < len(list) {
					list[n] = e
					n++
				} else {
					more = append(more, e)
				}
			}
			if n-from+len(more) > 1 {
				t.sortByHash(list[from:n], more)
			}
			if n == len(list) {
				return n
			}
		}
	}
	return n
}

// sortByHash sorts the entries of a bucket. Those that come first are in some afterwards.
func (t *Table) sortByHash(some, more []*Entry) {
	all := some
	if len(more) > 0 {
		all = append(slices.Clone(some), more...)
	}
	slices.SortFunc(all, func(a, b *Entry) int {
		if c := cmp.Compare(bits.Reverse32(a.hash), bits.Reverse32(b.hash)); c != 0 {
			return c
		}
		return strings.Compare(t.ID(a), t.ID(b))
	})
	copy(some, all)
}

// bucketOf returns the bucket of a hash, and how many places of the hash order it holds.
func (x *index) bucketOf(hash uint32) (bucket int, width uint64) {
	level := bits.Len32(x.mask)
	bucket = int(hash & x.mask)
	if bucket >= x.buckets.n || bucket|1<<(level-1) >= x.buckets.n { // it is not split yet
		level--
		bucket &= 1<<level - 1
	}
	return bucket, 1 << (32 - level)
}
