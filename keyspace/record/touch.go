package record

import (
	"errors"
	"strconv"
	"strings"
)

// Touch is the kind of a record that gives an item a new header and leaves its body: the time of the last
// write, the end and the version. A write that leaves a large body as it is journals a touch.
//
// A touch lies under a key of its own, [TouchKey], so that the item's record stays readable. Its body is the
// base: the version that wrote the item's body. It counts if the version of the item's record is at least the
// base and less than its own: then the record has the body, and nothing later. It occurs in journals only.
// The next checkpoint writes the whole record to the store.
const Touch Kind = 'h'

// touchPrefix begins the key of a touch.
const touchPrefix = "touch/"

// TouchKey returns the key of an item's touch.
func TouchKey(key string) string { return touchPrefix + key }

// TouchedKey is the inverse of [TouchKey]; false for other keys.
func TouchedKey(key string) (item string, ok bool) { return strings.CutPrefix(key, touchPrefix) }

// TouchItem returns the touch that gives an item its present header. Its body was written with the base.
func TouchItem(it Item, base uint64) Item {
	it.Kind, it.Body = Touch, strconv.FormatUint(base, 16)
	return it
}

var errTouch = errors.New("not a touch: it must have the version of a body")

// ReadTouch verifies and decodes the touch under a key. The item has no body.
func ReadTouch(key, rec string) (it Item, base uint64, err error) {
	if it, _, err = Decode(key, rec); err != nil {
		return it, 0, err
	}
	base, err = strconv.ParseUint(it.Body, 16, 64)
	if it.Kind != Touch || err != nil || base >= it.Version || it.Body != strconv.FormatUint(base, 16) {
		return Item{}, 0, errTouch
	}
	it.Body = ""
	return it, base, nil
}

// Touches reports whether a touch with this base counts for an item of a version.
func (it Item) Touches(base, version uint64) bool { return base <= version && version < it.Version }

// Touched returns the item with the header of a touch.
func (it Item) Touched(touch Item) Item {
	it.TS, it.ExpireAt, it.Version = touch.TS, touch.ExpireAt, touch.Version
	return it
}
