package ledger

import (
	"github.com/redis/go-redis/v9"
)

// The container whose items die, and the stream of their deaths.
const (
	DyingName   = "dying"
	DyingStream = "__keyevent@dying__:expired"
)

// Dying is an item that dies at a moment between two.
type Dying struct {
	From, To int64 // ms; To is 0 as long as the write has not been acknowledged
}

// Field returns a field of an entry; it is empty if the entry has none.
func Field(e redis.XMessage, name string) string {
	s, _ := e.Values[name].(string)
	return s
}
