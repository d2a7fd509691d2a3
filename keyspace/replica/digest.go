package replica

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"mayfly/keyspace/record"
)

// Digest is the sum of the SHA-256 of texts, which may come in any order. The zero value is that of none.
type Digest struct {
	sum  [4]uint64
	hash hash.Hash
	out  [sha256.Size]byte
	size [8]byte
}

// Add adds a text that is made of parts. Where they are cut counts.
func (d *Digest) Add(parts ...string) {
	if d.hash == nil {
		d.hash = sha256.New()
	}
	d.hash.Reset()
	for _, part := range parts {
		binary.LittleEndian.PutUint64(d.size[:], uint64(len(part)))
		d.hash.Write(d.size[:])
		d.hash.Write(record.Bytes(part))
	}
	out := d.hash.Sum(d.out[:0])
	for i := range d.sum {
		d.sum[i] += binary.LittleEndian.Uint64(out[8*i:])
	}
}

// Sum returns the digest.
func (d *Digest) Sum() (sum [32]byte) {
	for i, n := range d.sum {
		binary.LittleEndian.PutUint64(sum[8*i:], n)
	}
	return sum
}
