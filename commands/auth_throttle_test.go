package commands

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"mayfly/commands/access"
	"mayfly/commands/engine"
	"mayfly/test/drill"

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
	g.engine.Auth.After = func(d time.Duration, f func()) {
		g.delays = append(g.delays, d)
		g.wake = f
	}
	return g
}

// attempt gives a password on a session that needs one, and lets its delays pass. It returns their sum.
func (g *guessing) attempt(s *engine.Session, command ...string) (delay time.Duration, out engine.Outcome) {
	g.t.Helper()
	for out = g.engine.Execute(s, command); out.Deferred; out = g.engine.Execute(s, command) {
		if again := g.engine.Execute(s, command); !again.Deferred || again.Resume != out.Resume {
			g.t.Errorf("it does not wait")
		}
		d := g.delays[len(g.delays)-1]
		delay += d
		g.clock.Advance(d)
		g.wake()
		<-out.Resume
	}
	return delay, out
}

func unauthenticated(id int, addr string) *engine.Session {
	return engine.NewSession(int64(id), addr, "127.0.0.1:6379", testStart)
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
		if out.Reply.Str != engine.ErrWrongPass.Error() {
			t.Fatalf("%s", notation(out.Reply))
		}
		delays = append(delays, d/time.Millisecond)
	}
	if got := fmt.Sprint(delays); got != "[0s 0s 0s 100ns 200ns 400ns 800ns 1.6µs 2µs]" {
		t.Errorf("the attempts wait %s", got)
	}
	if _, out := g.attempt(s, "GET", "k"); out.Reply.Str != engine.ErrNoAuth.Error() {
		t.Errorf("%s", notation(out.Reply))
	}
	if d, out := g.attempt(s, "AUTH", "secret"); d != access.LongestDelay || out.Reply.Str != "OK" {
		t.Errorf("after %v: %s", d, notation(out.Reply))
	}
	if s.WrongPasswords != 0 {
		t.Error("wrong passwords count after the right one")
	}
	if n := g.engine.Auth.Denied.Load(); n != 9 {
		t.Errorf("%d wrong passwords are counted", n)
	}
}

// Of the attempts of an address one is checked after the other, with the delay between two, however many
// connections try at the same time. Those of other addresses do not wait.
func TestDelayOfAddress(t *testing.T) {
	t.Parallel()
	for name, addrs := range map[string][2]string{
		"IPv4": {"192.0.2.1:%d", "192.0.2.2:1"},
		"IPv6": {"[2001:db8::%x]:1", "[2001:db8:0:1::1]:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const seconds = 30
			conns := drill.Pick(50, 200, 200)
			g := newGuessing(t)
			var wakes []func()
			g.engine.Auth.After = func(_ time.Duration, f func()) { wakes = append(wakes, f) }
			sessions := make([]*engine.Session, conns)
			for i := range sessions {
				sessions[i] = unauthenticated(100+i, fmt.Sprintf(addrs[0], i+1))
			}
			checked := 0
			for range seconds * 100 {
				for i, s := range sessions {
					if out := g.engine.Execute(s, []string{"AUTH", "guess"}); !out.Deferred {
						checked++
						sessions[i] = unauthenticated(int(s.ID)+conns, s.Addr) // it connects anew
					}
				}
				g.clock.Advance(10 * time.Millisecond)
				for _, wake := range wakes {
					wake()
				}
				wakes = nil
			}
			// Without delay: 10. From the first delay to the longest: 4 of each. Then one a second.
			if most := access.FreeOfAddress + 2 + 7*access.GuessesToDouble + seconds; checked < access.FreeOfAddress || checked > most {
				t.Errorf("%d passwords are checked in %d seconds, more than %d", checked, seconds, most)
			}
			for range 3 {
				if out := g.engine.Execute(unauthenticated(1, addrs[1]), []string{"AUTH", "guess"}); out.Deferred {
					t.Error("another address waits")
				}
			}
		})
	}
}

// A right password waits for its turn, too, but a program that knows it opens many connections at once. After
// a minute nothing waits.
func TestRightPasswordOfAddress(t *testing.T) {
	t.Parallel()
	g := newGuessing(t)
	id := 100
	attempt := func(addr, password string) time.Duration {
		id++
		d, _ := g.attempt(unauthenticated(id, addr), "AUTH", password)
		return d
	}
	for i := range 100 {
		attempt(fmt.Sprintf("192.0.2.1:%d", i), "guess")
	}
	if d := attempt("[::ffff:192.0.2.1]:1", "secret"); d == 0 || d > access.LongestOfAddr {
		t.Errorf("the right password waits %v", d)
	}
	for range 50 {
		if d := attempt("192.0.2.1:1", "secret"); d != 0 {
			t.Errorf("a further connection waits %v", d)
		}
	}
	attempt("192.0.2.1:1", "guess")
	g.clock.Advance(time.Minute)
	for range access.FreeOfAddress {
		if d := attempt("192.0.2.1:1", "guess"); d != 0 {
			t.Errorf("after a minute it waits %v", d)
		}
	}
}

// The addresses take bounded memory.
func TestGuessersAreBounded(t *testing.T) {
	t.Parallel()
	g := newGuessing(t)
	for i := range 2 * access.MaxGuessers {
		g.clock.Advance(time.Millisecond)
		g.attempt(unauthenticated(i+10, fmt.Sprintf("192.0.%d.%d:1", i>>8, i&255)), "AUTH", "guess")
	}
	if n := len(g.engine.Auth.Addresses); n != access.MaxGuessers {
		t.Errorf("%d addresses are remembered", n)
	}
}

// The log names the address with most wrong passwords, at once and then every ten seconds, also when no more
// come.
func TestWrongPasswordsAreLogged(t *testing.T) {
	t.Parallel()
	g := newGuessing(t)
	var log bytes.Buffer
	g.engine.Log = zerolog.New(&log)
	guess := func(id int, addr string) {
		g.engine.Auth.NoteWrong(&unauthenticated(id, addr).Guesser)
		g.engine.LogWrongPasswords()
	}
	for i := range 100 {
		guess(i+10, "192.0.2.1:1")
		if i%10 == 0 {
			guess(i+10, fmt.Sprintf("192.0.2.%d:1", 2+i/10))
		}
	}
	g.engine.Sample(0)
	g.clock.Advance(access.GuessLineEvery * time.Millisecond)
	g.engine.Sample(0)
	g.clock.Advance(access.GuessLineEvery * time.Millisecond)
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

// In a transaction an attempt does not wait: once the next one would have to, the password is not looked at.
func TestGuessesInTransaction(t *testing.T) {
	t.Parallel()
	g := newGuessing(t)
	g.do(9, "ACL", "SETUSER", "u", "on", "nopass", "+@all", "-@dangerous")
	s := unauthenticated(50, "192.0.2.1:1")
	if _, out := g.attempt(s, "AUTH", "u", "x"); out.Reply.Str != "OK" {
		t.Fatalf("%s", notation(out.Reply))
	}
	g.engine.Execute(s, []string{"MULTI"})
	for i := range 50 {
		command := []string{"AUTH", "guess"}
		if i%2 == 1 {
			command = []string{"HELLO", "3", "AUTH", "default", "guess"}
		}
		if out := g.engine.Execute(s, command); out.Reply.Str != "QUEUED" {
			t.Fatalf("%s", notation(out.Reply))
		}
	}
	g.engine.Execute(s, []string{"AUTH", "secret"})
	replies := g.engine.Execute(s, []string{"EXEC"}).Reply.Elems
	refused := 0
	for _, r := range replies {
		if strings.HasPrefix(r.Str, "ERR wrong passwords delay the next attempt") {
			refused++
		}
	}
	if n := g.engine.Auth.Denied.Load(); len(replies) != 51 || n != 3 || refused != 48 || s.User() != "u" {
		t.Errorf("%d replies, %d passwords looked at, %d refused; the client is %s", len(replies), n, refused, s.User())
	}
	if d, out := g.attempt(s, "AUTH", "secret"); d == 0 || out.Reply.Str != "OK" {
		t.Errorf("after %v: %s", d, notation(out.Reply))
	}
}
