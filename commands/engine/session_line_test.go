package engine

import (
	"strings"
	"testing"
)

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
		line := s.ClientLine(c.now, c.running)
		for _, want := range c.want {
			if !strings.Contains(line, want) {
				t.Errorf("no %q in %q", want, line)
			}
		}
	}
	if line := NewSession(1, "[::1]:50000", "[::1]:6379", 0).ClientLine(0, nil); !strings.Contains(line, " flags=N ") {
		t.Errorf("no flags=N in %q", line)
	}
}
