package record

import (
	"strconv"
	"unicode/utf8"
)

// Log describes the log of a container's deaths. The entries are items of the log, a hidden container whose
// default is how long they are kept.
type Log struct {
	Number  uint32 // of the log
	MaxLen  int64  // the most entries
	Bodies  bool   // entries have the bodies of the items
	Deletes bool   // what clients delete has entries, too
}

// Hidden says what a container without a name holds: a log of deaths, or a consumer group of one.
type Hidden struct {
	LogOf   uint32 // the number of the container whose deaths are logged, when the record was written
	GroupOf uint32 // the number of the log that a group reads; 0: the container is a log
	Group   string // name of the group, any bytes
}

// IsGroup reports whether the container holds a consumer group, not a log.
func (h *Hidden) IsGroup() bool { return h.GroupOf != 0 }

// logBody is the JSON of Log and Hidden in a container's record. No log has number 0: databases have the
// first numbers.
type logBody struct {
	Log        uint32 `json:"log"`
	LogMax     int64  `json:"log_max"`
	LogBodies  bool   `json:"log_bodies"`
	LogDeletes bool   `json:"log_deletes"` // absent: false

	LogOf      *uint32 `json:"log_of"`
	GroupOf    uint32  `json:"group_of"`
	Group      string  `json:"group"`
	GroupBytes []byte  `json:"group_base64"` // of a name that is no valid text
}

// appendLog appends the fields of logBody that are set.
func (c *Container) appendLog(dst []byte) []byte {
	if l := c.Log; l != nil {
		dst = strconv.AppendUint(append(dst, `,"log":`...), uint64(l.Number), 10)
		dst = strconv.AppendInt(append(dst, `,"log_max":`...), l.MaxLen, 10)
		dst = strconv.AppendBool(append(dst, `,"log_bodies":`...), l.Bodies)
		if l.Deletes {
			dst = append(dst, `,"log_deletes":true`...)
		}
	}
	switch h := c.Hidden; {
	case h == nil:
	case !h.IsGroup():
		dst = strconv.AppendUint(append(dst, `,"log_of":`...), uint64(h.LogOf), 10)
	default:
		dst = strconv.AppendUint(append(dst, `,"group_of":`...), uint64(h.GroupOf), 10)
		if utf8.ValidString(h.Group) {
			return appendText(append(dst, `,"group":`...), h.Group)
		}
		return appendValue(append(dst, `,"group_base64":`...), []byte(h.Group))
	}
	return dst
}

// read fills in Log and Hidden of a container.
func (b *logBody) read(c *Container) {
	if b.Log != 0 {
		c.Log = &Log{b.Log, b.LogMax, b.LogBodies, b.LogDeletes}
	}
	switch {
	case b.LogOf != nil:
		c.Hidden = &Hidden{LogOf: *b.LogOf}
	case b.GroupOf != 0:
		c.Hidden = &Hidden{GroupOf: b.GroupOf, Group: b.Group + string(b.GroupBytes)} // one of them is empty
	}
}
