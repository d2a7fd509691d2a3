package record

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// MaxIDLength is the length in bytes of the longest id.
const MaxIDLength = 64 << 10

// MaxKeyLength is the length in bytes of the longest key: of the touch of an id of [MaxIDLength] in any
// container, or of the death of such an item.
const MaxKeyLength = MaxIDLength + max(len(touchPrefix+"4294967295:"), len("4294967295~:")+EntryIDLength)

// Keys of the catalogue. An item's key begins with a digit.
const (
	ClockKey        = "clock"
	WasteKey        = "waste"    // see package storage
	PositionKey     = "position" // see package replica
	StateKey        = "state"    // likewise
	containerPrefix = "container/"
)

var errKey = errors.New("not an item's key: it must be a container's number, a colon and an id, or in a log a number, ~, the id of an entry, a colon and an id, or of a page a number, / and the id of the page")

// AppendKey appends the key of an item: the container's number and the id, "12:order-1".
func AppendKey(dst []byte, container uint32, id string) []byte {
	dst = strconv.AppendUint(dst, uint64(container), 10)
	dst = append(dst, ':')
	return append(dst, id...)
}

// EntryIDLength is the length in bytes of the id of an entry in keys: see package deathlog.
const EntryIDLength = 24

// AppendLogKey appends the key of an item in a log of deaths: the log's number and the id, which begins with
// that of an entry and a colon, "41~0000019b76dacf1100000003:order-1".
func AppendLogKey(dst []byte, log uint32, id string) []byte {
	dst = strconv.AppendUint(dst, uint64(log), 10)
	dst = append(dst, '~')
	return append(dst, id...)
}

// AppendPageKey appends the key of a page: the container's number and the id of the page, "12/2a07.0".
func AppendPageKey(dst []byte, container uint32, id string) []byte {
	dst = strconv.AppendUint(dst, uint64(container), 10)
	dst = append(dst, '/')
	return append(dst, id...)
}

// AppendPageID appends the id of a page: the number of its collection and its own, both hexadecimal.
func AppendPageID(dst []byte, collection, page uint64) []byte {
	dst = strconv.AppendUint(dst, collection, 16)
	dst = append(dst, '.')
	return strconv.AppendUint(dst, page, 16)
}

// SplitPageID is the inverse of [AppendPageID]. It accepts nothing that this does not write.
func SplitPageID(id string) (collection, page uint64, ok bool) {
	first, second, _ := strings.Cut(id, ".")
	collection, ok1 := readShortHex(first)
	page, ok2 := readShortHex(second)
	return collection, page, ok1 && ok2
}

// readShortHex reads lower case hexadecimal digits without leading zeros.
func readShortHex(s string) (n uint64, ok bool) {
	if s == "" || len(s) > 16 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	for i := 0; i < len(s); i += 8 {
		part := s[i:min(i+8, len(s))]
		digits, ok := ReadHex(part)
		if !ok {
			return 0, false
		}
		n = n<<(4*len(part)) | uint64(digits)
	}
	return n, true
}

// Key is the key of an item in its parts.
type Key struct {
	Container uint32
	ID        string // in the container; shares memory with the key
	Log       bool   // the container is a log of deaths: ID is that of an entry, a colon and the id of the item that died
	Page      bool   // the item is a page of a collection: see AppendPageID
}

// Partition returns the number of the partition, of the given number of partitions, to which the item
// belongs. An entry of a log belongs to that of the item that died, a page to that of its collection, whose
// number ends with it.
func (k Key) Partition(partitions int) int {
	switch {
	case k.Log:
		return Partition(k.ID[EntryIDLength+1:], partitions)
	case k.Page:
		collection, _, _ := SplitPageID(k.ID)
		return int(collection % MaxPartitions)
	}
	return Partition(k.ID, partitions)
}

// SplitKey is the inverse of [AppendKey], [AppendLogKey] and [AppendPageKey]. It accepts nothing that these
// do not write.
func SplitKey(key string) (k Key, err error) {
	n := uint64(0)
	for i := 0; i < len(key) && i <= len("4294967295"); i++ {
		c := key[i]
		if c == ':' || c == '~' || c == '/' {
			k = Key{Container: uint32(n), ID: key[i+1:], Log: c == '~', Page: c == '/'}
			if i == 0 || n > math.MaxUint32 || key[0] == '0' && i > 1 || k.Log && !isLogID(k.ID) || k.Page && !isPageID(k.ID) {
				break
			}
			return k, nil
		}
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + uint64(c-'0')
	}
	return Key{}, errKey
}

// isPageID reports whether an id is that of a page.
func isPageID(id string) bool {
	_, _, ok := SplitPageID(id)
	return ok
}

// isLogID reports whether an id begins with that of an entry.
func isLogID(id string) bool {
	if len(id) <= EntryIDLength || id[EntryIDLength] != ':' {
		return false
	}
	_, first := ReadHex(id[:8])
	_, second := ReadHex(id[8:16])
	_, third := ReadHex(id[16:EntryIDLength])
	return first && second && third
}

// ContainerKey is the key of a container's record.
func ContainerKey(number uint32) string {
	return containerPrefix + strconv.FormatUint(uint64(number), 10)
}

// ContainerNumber is the inverse of [ContainerKey].
func ContainerNumber(key string) (uint32, error) {
	n, err := strconv.ParseUint(strings.TrimPrefix(key, containerPrefix), 10, 32)
	if err != nil || key != ContainerKey(uint32(n)) {
		return 0, fmt.Errorf("record %q: not a container's number", key)
	}
	return uint32(n), nil
}

// ContainsText reports whether the record under a key of the catalogue has text of users: a container's has.
func ContainsText(key string) bool { return strings.HasPrefix(key, containerPrefix) }

// InCatalogue reports whether a key is one of the catalogue: a container's, or one of the keys above.
func InCatalogue(key string) bool {
	switch key {
	case ClockKey, WasteKey, PositionKey, StateKey:
		return true
	}
	return strings.HasPrefix(key, containerPrefix)
}
