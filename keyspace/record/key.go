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

// MaxKeyLength is the length in bytes of the longest key: of the touch of an id of [MaxIDLength] in any container.
const MaxKeyLength = MaxIDLength + len(touchPrefix+"4294967295:")

// Keys of the catalogue. An item's key begins with a digit.
const (
	ClockKey        = "clock"
	WasteKey        = "waste" // see package waste
	containerPrefix = "container/"
)

var errKey = errors.New("not an item's key: it must be a container's number, a colon and an id")

// AppendKey appends the key of an item: the container's number and the id, "12:order-1".
func AppendKey(dst []byte, container uint32, id string) []byte {
	dst = strconv.AppendUint(dst, uint64(container), 10)
	dst = append(dst, ':')
	return append(dst, id...)
}

// SplitKey is the inverse of [AppendKey]. It accepts nothing that AppendKey does not write.
// The id shares memory with the key.
func SplitKey(key string) (container uint32, id string, err error) {
	n := uint64(0)
	for i := 0; i < len(key) && i <= len("4294967295"); i++ {
		c := key[i]
		if c == ':' {
			if i == 0 || n > math.MaxUint32 || key[0] == '0' && i > 1 {
				break
			}
			return uint32(n), key[i+1:], nil
		}
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + uint64(c-'0')
	}
	return 0, "", errKey
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

// InCatalogue reports whether a key is one of the catalogue: a container's, the clock's or that of the waste.
func InCatalogue(key string) bool {
	return key == ClockKey || key == WasteKey || strings.HasPrefix(key, containerPrefix)
}
