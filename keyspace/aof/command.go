package aof

import (
	"slices"
	"strconv"
)

const (
	setHead = "*3\r\n$3\r\nset\r\n"
	delHead = "*2\r\n$3\r\ndel\r\n"
)

// Op is one change: it sets the record under a key, or deletes the key.
type Op struct {
	Key, Rec string
	Body     string // the rest of the record behind Rec, empty if that is all
	Del      bool
}

// AppendSet appends the command that sets a key.
func AppendSet(dst []byte, key, rec string) []byte {
	dst = room(dst, int(SetSize(len(key), len(rec))))
	dst = append(dst, setHead...)
	dst = appendBulk(dst, key)
	return appendBulk(dst, rec)
}

// appendSet is AppendSet for a record in two parts.
func appendSet(dst []byte, key, rec, body string) []byte {
	if body == "" {
		return AppendSet(dst, key, rec)
	}
	dst = room(dst, int(SetSize(len(key), len(rec)+len(body))))
	dst = append(dst, setHead...)
	dst = appendBulk(dst, key)
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(rec)+len(body)), 10)
	dst = append(dst, "\r\n"...)
	dst = append(dst, rec...)
	dst = append(dst, body...)
	return append(dst, "\r\n"...)
}

// AppendDel appends the command that deletes a key.
func AppendDel(dst []byte, key string) []byte {
	dst = append(room(dst, delSize(len(key))), delHead...)
	return appendBulk(dst, key)
}

// delSize returns the size in bytes of the command that deletes a key of a length.
func delSize(key int) int { return len(delHead) + len("$\r\n\r\n") + digits(key) + key }

// AppendOps appends the commands for changes.
func AppendOps(dst []byte, ops []Op) []byte {
	for _, o := range ops {
		if o.Del {
			dst = AppendDel(dst, o.Key)
		} else {
			dst = appendSet(dst, o.Key, o.Rec, o.Body)
		}
	}
	return dst
}

// room returns dst with room for a command. What it grows to is double at least: append grows large slices by
// a quarter, and so copies the commands of a large transaction four times, under its locks.
func room(dst []byte, size int) []byte {
	if cap(dst)-len(dst) < size {
		dst = slices.Grow(dst, max(size, len(dst)))
	}
	return dst
}

func appendBulk(dst []byte, s string) []byte {
	dst = append(dst, '$')
	dst = strconv.AppendInt(dst, int64(len(s)), 10)
	dst = append(dst, "\r\n"...)
	dst = append(dst, s...)
	return append(dst, "\r\n"...)
}

// SetSize returns the size in bytes of a set command.
func SetSize(key, rec int) int64 {
	return int64(len(setHead) + len("$\r\n\r\n$\r\n\r\n") + digits(key) + key + digits(rec) + rec)
}

// ValueOffset returns the offset in a set command at which the digits of its value's length begin.
func ValueOffset(key int) int64 {
	return int64(len(setHead) + len("$\r\n\r\n$") + digits(key) + key)
}

// digits returns the number of decimal digits of a length.
func digits(length int) int {
	n := 1
	for ; length >= 10; length /= 10 {
		n++
	}
	return n
}
