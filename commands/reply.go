package commands

import (
	"strconv"
	"strings"

	"mayfly/keyspace"
)

// Kind is the type of a [Reply]. The names are those of RESP3; RESP2 renders the newer ones in the
// way Redis does (a map as a flat array, a double as a bulk string, …).
type Kind uint8

// The kinds of reply, and the fields of Reply that each uses.
const (
	KindNone      Kind = iota // nothing is sent (CLIENT REPLY OFF)
	KindStatus                // Str, one line: +OK
	KindError                 // Str, one line, begins with its code: -ERR …
	KindInteger               // Int
	KindBulk                  // Str, any bytes
	KindNull                  // RESP2 $-1, RESP3 _
	KindNullArray             // RESP2 *-1, RESP3 _
	KindArray                 // Elems
	KindMap                   // Elems: key, value, key, value …; RESP2: flat array
	KindSet                   // Elems; RESP2: array
	KindPush                  // Elems; RESP2: array
	KindDouble                // Dbl; RESP2: bulk string
	KindBool                  // Int 0 or 1; RESP2: integer
	KindVerbatim              // Str, text; RESP2: bulk string
	KindSeveral               // Elems: replies one after the other (SUBSCRIBE a b)
	KindProtocol              // Elems: one reply, to be rendered for protocol Int, whatever the connection's (HELLO in EXEC)
)

// Reply is the answer to one command, as a value: it is rendered once, for the protocol of the
// connection, after all that the command wrote is committed. Its strings are not copied: they may
// share memory with a stored document or with the arguments of the command.
type Reply struct {
	Kind  Kind
	Int   int64
	Dbl   float64
	Str   string
	Elems []Reply
}

// OK is the reply +OK.
var OK = Status("OK")

// Null is the null of a missing value.
var Null = Reply{Kind: KindNull}

// NullArray is the null that stands for an array, as of an aborted EXEC.
var NullArray = Reply{Kind: KindNullArray}

// Status is a one-line reply such as +OK.
func Status(s string) Reply { return Reply{Kind: KindStatus, Str: s} }

// Integer is an integer reply.
func Integer(n int64) Reply { return Reply{Kind: KindInteger, Int: n} }

// Count is an integer reply.
func Count(n int) Reply { return Integer(int64(n)) }

// Flag is the integer 1 or 0.
func Flag(b bool) Reply {
	if b {
		return Integer(1)
	}
	return Integer(0)
}

// Bulk is a string of any bytes.
func Bulk(s string) Reply { return Reply{Kind: KindBulk, Str: s} }

// BulkInt is a number as a bulk string, as in the replies of CONFIG GET.
func BulkInt(n int64) Reply { return Bulk(strconv.FormatInt(n, 10)) }

// Bulks is an array of bulk strings.
func Bulks(list ...string) Reply {
	elems := make([]Reply, len(list))
	for i, s := range list {
		elems[i] = Bulk(s)
	}
	return Array(elems...)
}

// Array is an array of replies.
func Array(elems ...Reply) Reply { return Reply{Kind: KindArray, Elems: elems} }

// Map is a map of alternating keys and values.
func Map(pairs ...Reply) Reply { return Reply{Kind: KindMap, Elems: pairs} }

// Set is an unordered collection.
func Set(elems ...Reply) Reply { return Reply{Kind: KindSet, Elems: elems} }

// Double is a floating-point number.
func Double(f float64) Reply { return Reply{Kind: KindDouble, Dbl: f} }

// Verbatim is text for a person, such as INFO.
func Verbatim(s string) Reply { return Reply{Kind: KindVerbatim, Str: s} }

// Error is an error as it goes over the wire, beginning with its code. It is a Go error too.
type Error string

func (e Error) Error() string { return string(e) }

// Fail is the reply for an error. One that is not an [Error], and so has no code, gets ERR. Line
// breaks, which may stem from what the user sent, become spaces, and at the end nothing, as in Redis.
func Fail(err error) Reply {
	text := err.Error()
	if _, ok := err.(Error); !ok {
		text = "ERR " + text
	}
	return Reply{Kind: KindError, Str: oneLine.Replace(strings.TrimRight(text, "\r\n"))}
}

// oneLine makes a text fit for an error, which ends at the first line break.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// unknownContainer says that there is no such container, and how to make one, if that is possible.
func unknownContainer(name string) error {
	if !keyspace.ValidName(name) {
		return invalidName(name)
	}
	return Error("ERR unknown container '" + name + "'; create it with CONTAINER.SET " + name + " TTL <off|-1|seconds>")
}

// cut shortens what a user sent so that an error naming it stays readable, as Redis does.
func truncate(s string) string {
	const most = 128
	if len(s) > most {
		return s[:most]
	}
	return s
}
