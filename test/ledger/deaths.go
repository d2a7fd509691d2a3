package ledger

import (
	"github.com/redis/go-redis/v9"
)

// The container of the drill.
const (
	DyingName   = "dying"
	DyingStream = "__keyevent@dying__:expired"
)

// Dying is an item that dies at a moment between two.
type Dying struct {
	From, To int64 // ms; to is 0 as long as the write has not been acknowledged
}

func Field(e redis.XMessage, name string) string {
	s, _ := e.Values[name].(string)
	return s
}
