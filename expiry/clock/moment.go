package clock

import (
	"strconv"
	"time"
)

// End is the last moment that a [Manual] clock of a server shows, in ms: that of the year 9999, beyond which
// RFC 3339 has no words.
const End int64 = 253402300799999

// ParseMoment reads a moment from 1 ms after 1970 to [End]: milliseconds since 1970, or a time of RFC 3339
// such as 2030-01-01T00:00:00Z, whose parts of a millisecond are dropped.
func ParseMoment(text string) (ms int64, ok bool) {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return 0, false
		}
		ms = t.UnixMilli()
	}
	return ms, ms > 0 && ms <= End
}

// FormatMoment writes a moment in ms as a time of RFC 3339 in UTC, with milliseconds.
func FormatMoment(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
