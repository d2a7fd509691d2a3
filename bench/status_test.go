package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// TestStatus: a run shows its mode and step, and rate and time left where work is counted.
func TestStatus(t *testing.T) {
	now := time.Hour
	s := newStatus(&bytes.Buffer{}, true, func() time.Duration { return now })
	check := func(want string) {
		t.Helper()
		if got := s.text(); got != want {
			t.Errorf("it shows %q, want %q", got, want)
		}
	}
	s.begin("growth")
	now += 2 * time.Second
	check("growth; 2 s")
	s.next("%d documents", 10)
	s.send(0, 3000)
	now += 2 * time.Second
	check("growth: 10 documents; 4 s")
	s.send(2000, 3000)
	check("growth: 10 documents: 2,000 of 3,000 at 1.00 k/s, 1 s left; 4 s")
	s.send(3000, 3000)
	check("growth: 10 documents; 4 s")
	s.send(500, 3000) // another pipeline
	check("growth: 10 documents: 500 of 3,000; 4 s")
	s.begin("compare")
	s.nextOf(0, 4, "GET")
	now += 50 * time.Second
	check("compare 1 of 4: GET; 50 s")
	s.nextOf(2, 4, "SET")
	now += 50 * time.Second
	check("compare 3 of 4: SET; 1 min 40 s, about 1 min 40 s left")
}

// TestStatusLeavesTheTerminal: a table is not written behind the status, and nothing of it stays at the end.
func TestStatusLeavesTheTerminal(t *testing.T) {
	var out bytes.Buffer
	now := time.Hour
	s := newStatus(&out, true, func() time.Duration { now += time.Minute; return now })
	s.begin("purge")
	s.show()
	s.show()
	if err := s.print(&out, "| table |\n"); err != nil {
		t.Fatal(err)
	}
	s.show()
	s.watch()()
	const clear = "\r\x1b[K"
	text := out.String()
	if !strings.Contains(text, "purge; ") || !strings.Contains(text, clear+"| table |\n"+clear) || !strings.HasSuffix(text, clear) {
		t.Errorf("it shows %q", text)
	}
}
