package commands

import "strings"

// Kind is the type of a [Reply], with the names of RESP3. RESP2 renders newer types as Redis does: a map
// as a flat array, a double as a bulk string.
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
	KindVerbatim              // Str, text; RESP2: bulk string. With Int 1 Str begins with its format: "mkd:"
	KindSeveral               // Elems: several replies in sequence (SUBSCRIBE a b)
	KindBigNumber             // Str, digits; RESP2: bulk string
	KindElement               // Str, JSON: the bulk string with the array of this element
	KindProtocol              // Elems: one reply, to be rendered for protocol Int, whatever the connection's (HELLO in EXEC)
)

// Reply is the reply of one command, as a value. It is rendered once, for the protocol of the connection,
// after everything it reveals is committed. Its strings are not copied: they may share memory with a
// stored item or with the arguments.
type Reply struct {
	Kind  Kind
	Int   int64
	Dbl   float64
	Str   string
	Elems []Reply
}

// OK is the reply +OK.
var OK = Status("OK")

// Null is the reply of a missing value.
var Null = Reply{Kind: KindNull}

// NullArray is the reply of a missing array, as of an aborted EXEC.
var NullArray = Reply{Kind: KindNullArray}

// Status returns a one-line reply such as +OK.
func Status(s string) Reply { return Reply{Kind: KindStatus, Str: s} }

// Integer returns an integer reply.
func Integer(n int64) Reply { return Reply{Kind: KindInteger, Int: n} }

// Count returns an integer reply.
func Count(n int) Reply { return Integer(int64(n)) }

// Flag returns the integer 1 or 0.
func Flag(b bool) Reply {
	if b {
		return Integer(1)
	}
	return Integer(0)
}

// Bulk returns a string of any bytes.
func Bulk(s string) Reply { return Reply{Kind: KindBulk, Str: s} }

// textOrNull returns a string, or null if it is empty.
func textOrNull(text string) Reply {
	if text == "" {
		return Null
	}
	return Bulk(text)
}

// Bulks returns an array of bulk strings.
func Bulks(list ...string) Reply {
	elems := make([]Reply, len(list))
	for i, s := range list {
		elems[i] = Bulk(s)
	}
	return Array(elems...)
}

// Array returns an array of replies.
func Array(elems ...Reply) Reply { return Reply{Kind: KindArray, Elems: elems} }

// Map returns a map of alternating keys and values.
func Map(pairs ...Reply) Reply { return Reply{Kind: KindMap, Elems: pairs} }

// Set returns an unordered collection.
func Set(elems ...Reply) Reply { return Reply{Kind: KindSet, Elems: elems} }

// Double returns a floating-point number.
func Double(f float64) Reply { return Reply{Kind: KindDouble, Dbl: f} }

// Verbatim returns text for a person, such as INFO.
func Verbatim(s string) Reply { return Reply{Kind: KindVerbatim, Str: s} }

// Error is an error as it goes over the wire, with its code first. It is also a Go error.
type Error string

func (e Error) Error() string { return string(e) }

// Fail returns the reply of an error. An error that is not an [Error] gets the code ERR. As in Redis,
// line breaks become spaces, but not at the end, where they go.
func Fail(err error) Reply {
	text := err.Error()
	if _, ok := err.(Error); !ok {
		text = "ERR " + text
	}
	return Reply{Kind: KindError, Str: oneLine.Replace(strings.TrimRight(text, "\r\n"))}
}

// oneLine replaces line breaks, which end an error on the wire.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")
