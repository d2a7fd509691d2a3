package commands

import (
	"regexp"
	"strings"
	"testing"

	"mayfly/commands/engine"
)

// The line of CLIENT LIST has the fields of Redis 7.0 in their order, then those of 7.2.
func TestClientLineOnRedis(t *testing.T) {
	names := regexp.MustCompile(`([a-z-]+)=`)
	fields := func(line string) string {
		var list []string
		for _, m := range names.FindAllStringSubmatch(line, -1) {
			list = append(list, m[1])
		}
		return strings.Join(list, " ")
	}
	theirs := fields(startRealRedis(t).dial(t).do(t, "CLIENT", "INFO").Str)
	ours := fields(engine.NewSession(1, "127.0.0.1:50000", "127.0.0.1:6379", 0).ClientLine(0, nil))
	if theirs == "" || ours != theirs+" lib-name lib-ver" {
		t.Errorf("ours:  %s\nRedis: %s", ours, theirs)
	}
}
