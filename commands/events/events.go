package events

import (
	"errors"
	"strings"
)

// Classes are classes of events, and the channels of their messages: the letters of the option
// notify-keyspace-events.
type Classes uint32

// The letters in the order in which Redis shows them. Some classes have no events here, since there are
// no items of their type.
const (
	classGeneric   Classes = 1 << iota // DEL, EXPIRE and the like, of items of any type
	classString                        // commands on plain keys
	classList                          // commands on lists
	classSet                           // commands on sets, and deaths of their members
	classHash                          // commands on hashes, and deaths of their fields
	classSortedSet                     // commands on sorted sets, and deaths of their members
	ClassExpired                       // an item has died
	classEvicted                       // an item was evicted
	_                                  // t: streams
	classDocument                      // commands on documents; in Redis those of modules
	ClassNew                           // an item is created
	ToKeyspace
	ToKeyevent
	ClassMissed // a client read a missing item
)

const (
	classLetters = "g$lshzxetdnKEm"
	// ClassAll is the letter A: all classes but n and m.
	ClassAll   = ClassNew - 1
	classUsage = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'."
)

// Parse reads the letters. The error has the words of Redis.
func Parse(text string) (Classes, error) {
	var e Classes
	for _, letter := range text {
		at := strings.IndexRune(classLetters, letter)
		switch {
		case letter == 'A':
			e |= ClassAll
		case at >= 0:
			e |= 1 << at
		default:
			//lint:ignore ST1005 the words of Redis
			return 0, errors.New(classUsage)
		}
	}
	return e, nil
}

// String writes the letters as Redis does, but shows n beside A, too.
func (e Classes) String() string {
	var out strings.Builder
	if e&ClassAll == ClassAll {
		out.WriteByte('A')
		e &^= ClassAll
	}
	for i := range len(classLetters) {
		if e&(1<<i) != 0 {
			out.WriteByte(classLetters[i])
		}
	}
	return out.String()
}

// Kind is a kind of change of an item: its class, and the name in messages.
type Kind struct {
	Class Classes
	Name  string
}

// The kinds of events, with the names of Redis where Redis has the case. Every write of an item has one.
var (
	Set         = Kind{classString, "set"}
	Append      = Kind{classString, "append"}
	IncrBy      = Kind{classString, "incrby"}
	IncrByFloat = Kind{classString, "incrbyfloat"}
	SetRange    = Kind{classString, "setrange"}

	Del        = Kind{classGeneric, "del"}
	Expire     = Kind{classGeneric, "expire"} // also of documents: EXPIRE has set the member ttl
	Persist    = Kind{classGeneric, "persist"}
	CopyTo     = Kind{classGeneric, "copy_to"}
	MoveFrom   = Kind{classGeneric, "move_from"}
	MoveTo     = Kind{classGeneric, "move_to"}
	RenameFrom = Kind{classGeneric, "rename_from"}
	RenameTo   = Kind{classGeneric, "rename_to"}

	DocPut    = Kind{classDocument, "doc.put"}
	DocPatch  = Kind{classDocument, "doc.patch"}
	DocMerge  = Kind{classDocument, "doc.merge"}
	DocTouch  = Kind{classDocument, "doc.touch"}
	DocSetTTL = Kind{classDocument, "doc.setttl"}
	DocRevive = Kind{classDocument, "doc.revive"}

	New     = Kind{ClassNew, "new"}
	Missed  = Kind{ClassMissed, "keymiss"}
	Expired = Kind{ClassExpired, "expired"}
	Evicted = Kind{classEvicted, "evicted"}

	HExpired = Hash("hexpired")        // fields of a hash have died
	SExpired = OfSet("sexpired")       // members of a set have died
	ZExpired = OfSortedSet("zexpired") // members of a sorted set have died
)

// JSON returns the kind of event of a command on JSON paths, whose name it has.
func JSON(name string) Kind { return Kind{classDocument, name} }

// OfSet returns the kind of event of a command on sets, whose name it has.
func OfSet(name string) Kind { return Kind{classSet, name} }

// OfSortedSet returns the kind of event of a command on sorted sets, whose name it has.
func OfSortedSet(name string) Kind { return Kind{classSortedSet, name} }

// OfList returns the kind of event of a command on lists, whose name it has.
func OfList(name string) Kind { return Kind{classList, name} }

// Hash returns the kind of event of a command on hashes, whose name it has.
func Hash(name string) Kind { return Kind{classHash, name} }
