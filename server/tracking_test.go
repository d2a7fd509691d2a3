package server

import (
	"fmt"
	"strings"
	"testing"

	"mayfly/test/drill"
)

// TestBrokenRedirect: a client whose messages go to another learns that this one has gone, once something is
// to be told.
func TestBrokenRedirect(t *testing.T) {
	t.Parallel()
	_, address := realServer(t)
	target, reader, writer := dial(t, address), dial(t, address), dial(t, address)
	target.send("SUBSCRIBE __redis__:invalidate\r\n")
	target.expect("*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n")
	reader.send("CLIENT REPLY SKIP\r\nHELLO 3\r\nCLIENT TRACKING ON REDIRECT 1\r\nGET k\r\nCLIENT GETREDIR\r\n")
	reader.expect("+OK\r\n_\r\n:1\r\n")
	writer.send("SET k 1\r\n")
	writer.expect("+OK\r\n")
	target.expect("*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\nk\r\n")
	target.send("QUIT\r\n")
	target.expect("+OK\r\n")
	target.expectEnd()
	for { // the end of a connection is seen a moment later
		writer.send("CLIENT LIST ID 1\r\n")
		if line := writer.line(); line == "$0" {
			writer.line()
			break
		}
		writer.line()
		writer.line()
	}
	reader.send("GET k\r\n")
	reader.expect("$1\r\n1\r\n")
	writer.send("SET k 2\r\n")
	writer.expect("+OK\r\n")
	reader.expect(">2\r\n$21\r\ntracking-redir-broken\r\n:1\r\n")
	reader.send("CLIENT TRACKINGINFO\r\n")
	reader.expect("%3\r\n$5\r\nflags\r\n~2\r\n$2\r\non\r\n$15\r\nbroken_redirect\r\n$8\r\nredirect\r\n:1\r\n$8\r\nprefixes\r\n*0\r\n")
}

// TestRedirectToItself: a client of RESP2 that subscribes may be told on its own connection.
func TestRedirectToItself(t *testing.T) {
	t.Parallel()
	_, address := realServer(t)
	reader, writer := dial(t, address), dial(t, address)
	reader.send("CLIENT TRACKING ON REDIRECT 1\r\nGET k\r\nSUBSCRIBE __redis__:invalidate\r\n")
	reader.expect("+OK\r\n$-1\r\n*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n")
	writer.send("SET k 1\r\n")
	writer.expect("+OK\r\n")
	reader.expect("*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\nk\r\n")
}

// line reads a line without its end.
func (c *client) line() string {
	c.t.Helper()
	text, err := c.r.ReadString('\n')
	drill.Check(c.t, err)
	return strings.TrimRight(text, "\r\n")
}

// TestNoMessageOvertakesARead: while another client counts a key up, a client that reads it is told of each
// value that it has got and that has changed, after the reply.
func TestNoMessageOvertakesARead(t *testing.T) {
	t.Parallel()
	_, address := realServer(t)
	reader, writer := dial(t, address), dial(t, address)
	reader.send("CLIENT REPLY SKIP\r\nHELLO 3\r\nCLIENT TRACKING ON\r\n")
	reader.expect("+OK\r\n")
	rounds := drill.Pick(200, 1000, 20_000)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range rounds {
			writer.send("INCR k\r\n")
			writer.line()
		}
	}()
	last, values, told := "", 0, 0 // of the reads: the last value, and how many different ones
	hear := func(line string) bool {
		if !strings.HasPrefix(line, ">") {
			return false
		}
		for range 5 { // invalidate, and an array of one name
			line = reader.line()
		}
		if told++; line != "k" || told > values {
			t.Fatalf("told of %q, %d times after %d values", line, told, values)
		}
		return true
	}
	read := func() {
		reader.send("GET k\r\n")
		line := reader.line()
		for hear(line) {
			line = reader.line()
		}
		if line != "_" {
			line = reader.line()
		}
		if line != last {
			last, values = line, values+1
		}
	}
	for over := false; !over; read() {
		over = drill.Done(ended)
	}
	for told < values-1 {
		if !hear(reader.line()) {
			t.Fatal("not a message")
		}
	}
	if last != fmt.Sprint(rounds) || values < 2 {
		t.Errorf("the last of %d values is %s", values, last)
	}
}
