package redisfmt

// Encodings are bounds of the small encodings that OBJECT ENCODING shows, as Redis would have them.
type Encodings struct {
	HashEntries, HashValue           int // fields; bytes of a field or a value (hash-max-listpack-…)
	SortedSetEntries, SortedSetValue int // members; bytes of one (zset-max-listpack-…)
	SetIntegers                      int // members (set-max-intset-entries)
}

// DefaultEncodings are those of Redis 7.0.
var DefaultEncodings = Encodings{512, 64, 128, 64, 512}
