package harness

import (
	"strconv"
	"strings"
	"testing"

	"mayfly/test/drill"

	"github.com/redis/go-redis/v9"
)

// Figure returns a number of INFO.
func Figure(t *testing.T, db *redis.Client, name string) int64 {
	t.Helper()
	info, err := db.Info(t.Context(), "everything").Result()
	drill.Check(t, err)
	_, rest, _ := strings.Cut(info, "\r\n"+name+":")
	value, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		t.Fatalf("INFO has no number %s: %v", name, err)
	}
	return n
}
