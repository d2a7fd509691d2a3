package commands

import (
	"regexp"
	"strings"
	"testing"
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
	ours := fields(NewSession(1, "127.0.0.1:50000", "127.0.0.1:6379", 0).clientLine(0, nil))
	if theirs == "" || ours != theirs+" lib-name lib-ver" {
		t.Errorf("ours:  %s\nRedis: %s", ours, theirs)
	}
}

func TestClientLine(t *testing.T) {
	t.Parallel()
	s := NewSession(7, "/run/mayfly.sock:0", "/run/mayfly.sock:0", 10_000)
	for _, c := range []struct {
		now     int64
		running []string
		want    []string
	}{
		{10_000, nil, []string{"id=7 addr=/run/mayfly.sock:0 laddr=/run/mayfly.sock:0 ", " flags=U ", " age=0 idle=0 ", " cmd=NULL ", " qbuf=0 "}},
		{12_999, []string{"client", "list"}, []string{" age=2 idle=2 ", " qbuf=26 ", " argv-mem=10 "}}, // as Redis counts them
		{9_000, nil, []string{" age=0 idle=0 "}}, // another session's command began before this one's
	} {
		line := s.clientLine(c.now, c.running)
		for _, want := range c.want {
			if !strings.Contains(line, want) {
				t.Errorf("no %q in %q", want, line)
			}
		}
	}
	if line := NewSession(1, "[::1]:50000", "[::1]:6379", 0).clientLine(0, nil); !strings.Contains(line, " flags=N ") {
		t.Errorf("no flags=N in %q", line)
	}
}
