package commands

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// guessing is an engine with a password whose delays a test ends.
type guessing struct {
	*harness
	delays []time.Duration // of all attempts that waited
	wake   func()          // ends the last delay
}

func newGuessing(t *testing.T) *guessing {
	g := &guessing{harness: newHarness(t)}
	g.do(9, "CONFIG", "SET", "requirepass", "secret")
	g.engine.auth.after = func(d time.Duration, f func()) {
		g.delays = append(g.delays, d)
		g.wake = f
	}
	return g
}

// attempt gives a password on a session that needs one, and ends its delay. It returns the delay.
func (g *guessing) attempt(s *Session, command ...string) (delay time.Duration, out Outcome) {
	g.t.Helper()
	before := len(g.delays)
	out = g.engine.Execute(s, command)
	if !out.Deferred {
		return 0, out
	}
	if again := g.engine.Execute(s, command); !again.Deferred || again.Resume != out.Resume {
		g.t.Errorf("it does not wait")
	}
	g.wake()
	<-out.Resume
	out = g.engine.Execute(s, command)
	if len(g.delays) != before+1 || out.Deferred {
		g.t.Fatalf("it waits again")
	}
	return g.delays[before], out
}

func unauthenticated(id int, addr string) *Session {
	return NewSession(int64(id), addr, "127.0.0.1:6379", testStart)
}

// The attempts of a connection wait longer after each wrong password. A right one ends that.
func TestDelayOfConnection(t *testing.T) {
	t.Parallel()
	g := newGuessing(t)
	s := unauthenticated(50, "192.0.2.1:1")
	var delays []time.Duration
	for i := range 9 {
		command := []string{"AUTH", "guess"}
		if i%2 == 1 {
			command = []string{"HELLO", "3", "AUTH", "default", "guess"}
		}
		d, out := g.attempt(s, command...)
		if out.Reply.Str != errWrongPass.Error() {
			t.Fatalf("%s", notation(out.Reply))
		}
		delays = append(delays, d/time.Millisecond)
	}
	if got := fmt.Sprint(delays); got != "[0s 0s 0s 100ns 200ns 400ns 800ns 1.6µs 2µs]" {
		t.Errorf("the attempts wait %s", got)
	}
	if _, out := g.attempt(s, "GET", "k"); out.Reply.Str != errNoAuth.Error() {
		t.Errorf("%s", notation(out.Reply))
	}
	if d, out := g.attempt(s, "AUTH", "secret"); d != longestDelay || out.Reply.Str != "OK" {
		t.Errorf("after %v: %s", d, notation(out.Reply))
	}
	if s.wrongPasswords != 0 {
		t.Error("wrong passwords count after the right one")
	}
	if n := g.engine.auth.denied.Load(); n != 9 {
		t.Errorf("%d wrong passwords are counted", n)
	}
}

// Other connections from an address wait, too, whatever password they give, until a minute has passed. Other
// addresses do not.
func TestDelayOfAddress(t *testing.T) {
	t.Parallel()
	g := newGuessing(t)
	id := 100
	attempt := func(addr, password string) time.Duration {
		id++
		d, _ := g.attempt(unauthenticated(id, addr), "AUTH", password)
		return d
	}
	for i := range 100 {
		d := attempt(fmt.Sprintf("192.0.2.1:%d", i), "guess")
		if want := i > freeOfAddress; (d > 0) != want {
			t.Fatalf("attempt %d waits %v", i, d)
		}
	}
	if d := attempt("192.0.2.1:1", "secret"); d != longestOfAddr {
		t.Errorf("the right password waits %v", d)
	}
	if d := attempt("[::ffff:192.0.2.1]:1", "secret"); d != longestOfAddr {
		t.Errorf("the address as one of IPv6 waits %v", d)
	}
	if d := attempt("192.0.2.2:1", "guess"); d != 0 {
		t.Errorf("another address waits %v", d)
	}
	for i := range 50 {
		attempt(fmt.Sprintf("[2001:db8::%d]:1", i+1), "guess")
	}
	if d := attempt("[2001:db8::ffff]:1", "secret"); d == 0 {
		t.Error("the network of an address does not wait")
	}
	if d := attempt("[2001:db8:0:1::1]:1", "secret"); d != 0 {
		t.Error("another network waits")
	}
	g.clock.Advance(time.Minute)
	if d := attempt("192.0.2.1:1", "secret"); d != 0 {
		t.Errorf("after a minute it waits %v", d)
	}
}

// The addresses take bounded memory.
func TestGuessersAreBounded(t *testing.T) {
	t.Parallel()
	g := newGuessing(t)
	for i := range 2 * maxGuessers {
		g.clock.Advance(time.Millisecond)
		g.attempt(unauthenticated(i+10, fmt.Sprintf("192.0.%d.%d:1", i>>8, i&255)), "AUTH", "guess")
	}
	if n := len(g.engine.auth.addresses); n != maxGuessers {
		t.Errorf("%d addresses are remembered", n)
	}
}

// The log names the address with most wrong passwords, at once and then every ten seconds, also when no more come.
func TestWrongPasswordsAreLogged(t *testing.T) {
	t.Parallel()
	g := newGuessing(t)
	var log bytes.Buffer
	g.engine.Log = zerolog.New(&log)
	for i := range 100 {
		g.attempt(unauthenticated(i+10, "192.0.2.1:1"), "AUTH", "guess")
		if i%10 == 0 {
			g.attempt(unauthenticated(i+10, fmt.Sprintf("192.0.2.%d:1", 2+i/10)), "AUTH", "guess")
		}
	}
	g.engine.Sample(0)
	g.clock.Advance(guessLineEvery * time.Millisecond)
	g.engine.Sample(0)
	g.clock.Advance(guessLineEvery * time.Millisecond)
	g.engine.Sample(0)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	want := []string{
		`"addr":"192.0.2.1","wrong_passwords":1,"of_all_addresses":1,"other_addresses":0`,
		`"addr":"192.0.2.1","wrong_passwords":99,"of_all_addresses":109,"other_addresses":10`,
	}
	if len(lines) != len(want) {
		t.Fatalf("%d lines:\n%s", len(lines), log.String())
	}
	for i := range want {
		if !strings.Contains(lines[i], want[i]) {
			t.Errorf("%s lacks %s", lines[i], want[i])
		}
	}
}
