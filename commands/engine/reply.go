package engine

import (
	"math"
	"strings"
	"unsafe"

	"mayfly/keyspace/elements"
)

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
	KindArray                 // Elems; of a [List] Int elements in several blocks
	KindMap                   // Elems: key, value, key, value …; RESP2: flat array
	KindSet                   // Elems; RESP2: array
	KindPush                  // Elems; RESP2: array
	KindDouble                // Float; RESP2: bulk string
	KindBool                  // Int 0 or 1; RESP2: integer
	KindVerbatim              // Str, text; RESP2: bulk string. With Int 1 Str begins with its format: "mkd:"
	KindSeveral               // Elems: several replies in sequence (SUBSCRIBE a b)
	KindBigNumber             // Str, digits; RESP2: bulk string
	KindElement               // Str, JSON: the bulk string with the array of this element
	KindText                  // Text: a bulk string that is rendered as it is sent
	KindElements              // Str: elements of a collection as the keyspace has them, Int: the strings of each; see [Elements]
	KindProtocol              // Elems: one reply, to be rendered for protocol Int, whatever the connection's (HELLO in EXEC)
)

// Reply is the reply of one command, as a value. It is rendered once, for the protocol of the connection,
// after everything it reveals is committed. Its strings are not copied: they may share memory with a
// stored item or with the arguments.
type Reply struct {
	Kind  Kind
	Int   int64
	Str   string
	Elems []Reply
	Text  *Text
}

// A Text is a long string that is rendered as it is sent, from what it shows, so that it is never in memory
// whole.
type Text struct {
	Size int // bytes
	Held int // bytes of what it shows, which stay in memory as long

	// Render calls send with the pieces of the text, of about 64 KB. send must not keep them. It returns the
	// first error of send. It may be called several times.
	Render func(send func(piece []byte) error) error
}

// String returns the whole text.
func (t *Text) String() string {
	all := make([]byte, 0, t.Size)
	_ = t.Render(func(piece []byte) error {
		all = append(all, piece...)
		return nil
	})
	return unsafe.String(unsafe.SliceData(all), len(all)) // nobody changes it any more
}

// Float returns the number of a [KindDouble].
func (r *Reply) Float() float64 { return math.Float64frombits(uint64(r.Int)) }

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

// TextOrNull returns a string, or null if it is empty.
func TextOrNull(text string) Reply {
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

// The strings of an element that a reply of [Elements] has.
const (
	Fields = 1 << iota
	Values
)

// Elements returns an array, a map or a set with n strings: those of elements of a collection, as the
// keyspace has them. They are told apart when the reply is rendered.
func Elements(kind Kind, n, strings int, bodies []string) Reply {
	r := Reply{Kind: kind, Int: int64(n)}
	for _, body := range bodies {
		if body != "" {
			r.Elems = append(r.Elems, Reply{Kind: KindElements, Str: body, Int: int64(strings)})
		}
	}
	return r
}

// Strings yields the strings of a [KindElements], each with the digits of its length.
func (r *Reply) Strings(yield func(digits, text string) bool) {
	for which, rest := int64(Fields), r.Str; rest != ""; which ^= Fields | Values {
		var digits, text string
		if digits, text, rest = elements.CutText(rest); r.Int&which != 0 && !yield(digits, text) {
			return
		}
	}
}

// Double returns a floating-point number.
func Double(f float64) Reply { return Reply{Kind: KindDouble, Int: int64(math.Float64bits(f))} }

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
	return Reply{Kind: KindError, Str: OneLine.Replace(strings.TrimRight(text, "\r\n"))}
}

// OneLine replaces line breaks, which end an error on the wire.
var OneLine = strings.NewReplacer("\r", " ", "\n", " ")

// OrNull returns an integer, or null if it is not known.
func OrNull(n int64, known bool) Reply {
	if !known {
		return Null
	}
	return Integer(n)
}

// A List collects the elements of an array. A long one is kept in blocks, so that none is moved when it
// grows: the collector waits while many megabytes are moved, and all clients with it. The zero value is an
// empty list. Not safe for concurrent use.
type List struct {
	// Memory, if not nil, is charged for the list until it is an array.
	Memory *ClientMemory

	blocks     []Reply // of KindSeveral
	n          int
	size, held int  // bytes of all, and those that are charged
	refused    bool // they are too many
}

// blockLen is how many elements a block has.
const blockLen = 1 << 10

// Expect makes room for n elements of an empty list.
func (l *List) Expect(n int) {
	l.blocks = []Reply{{Kind: KindSeveral, Elems: make([]Reply, 0, min(n, blockLen))}}
}

// Add appends an element. Without memory for it the list ends there: Array tells.
func (l *List) Add(r Reply) {
	if l.refused {
		return
	}
	const step = 64 << 10
	if l.size += int(unsafe.Sizeof(r)) + len(r.Str); l.size-l.held >= step {
		if l.refused = !l.Memory.Reserve(l.size - l.held); l.refused {
			return
		}
		l.held = l.size
	}
	last := len(l.blocks) - 1
	switch {
	case last < 0:
		l.blocks, last = []Reply{{Kind: KindSeveral, Elems: []Reply{}}}, 0
	case len(l.blocks[last].Elems) == blockLen:
		l.blocks = append(l.blocks, Reply{Kind: KindSeveral, Elems: make([]Reply, 0, blockLen)})
		last++
	}
	l.blocks[last].Elems = append(l.blocks[last].Elems, r)
	l.n++
}

// Array returns the array, or an error if there was no memory for it. From then on its sender charges it.
func (l *List) Array() Reply {
	l.Memory.Release(l.held)
	switch {
	case l.refused:
		return Fail(ErrClientMemory)
	case len(l.blocks) == 0:
		return Array()
	case len(l.blocks) == 1:
		return Array(l.blocks[0].Elems...)
	}
	return Reply{Kind: KindArray, Int: int64(l.n), Elems: l.blocks}
}

// Set is Array as a set.
func (l *List) Set() Reply {
	r := l.Array()
	if r.Kind == KindArray {
		r.Kind = KindSet
	}
	return r
}

// Refused reports whether there was no memory for an element.
func (l *List) Refused() bool { return l.refused }

// After returns the array of a cursor and the list, or an error if there was no memory for the list: a client
// would take the cursor for a good one.
func (l *List) After(cursor Reply) Reply {
	list := l.Array()
	if list.Kind == KindError {
		return list
	}
	return Array(cursor, list)
}
