package keyspace

import (
	"mayfly/expiry"

	"github.com/rs/zerolog"
)

// Options configure a keyspace. The zero value of each field but Dir works.
type Options struct {
	Dir          string         // the data folder; created if missing
	Partitions   int            // 1 to 256; 0 means 16; fixed when the folder is made
	Fsync        Fsync          // when what is written is forced to disk; the zero value is EverySec
	Clock        expiry.Clock   // nil means the system's
	Log          zerolog.Logger // progress and trouble; the zero value is silent
	ExpireEffort int            // active-expire-effort, 1 to 10; 0 means 1
	NoPurge      bool           // do not start the active purge (tests drive it by hand)
}

// Fsync says when what is written is forced to disk (appendfsync).
type Fsync int32

// The policies, named as in Redis.
const (
	EverySec Fsync = iota // a reply means handed to the operating system; forced to disk each second
	Always                // a reply means on disk
	No                    // the operating system decides
)

// Kind is what an item is.
type Kind uint8

// The kinds; the letter stands in the record on disk.
const (
	Document Kind = 'd' // a JSON object, written by DOC.*
	Plain    Kind = 'p' // bytes, written by SET and its family
)

// Item is what a container holds under an id: a value, safe to keep (Body is immutable).
type Item struct {
	Kind    Kind
	Body    string // JSON as the user wrote it, or bytes
	TS      int64  // time of the last write in ms
	Own     int64  // own end: expiry.Inherit, expiry.Never or the moment in ms
	Version uint64 // grows with every write of any item; never used twice
}

// Ticket stands for a state of the keyspace that may not be committed yet: a reply that reports or
// reveals it must not leave before [Keyspace.Wait] has returned for it. Tickets are ordered; the
// greater covers the lesser. The zero ticket is always committed.
type Ticket uint64
