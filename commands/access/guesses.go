package access

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
)

// Guesses slows down clients that guess passwords. The zero value is ready. Safe for concurrent use.
//
// An attempt to authenticate waits, before it is checked, if wrong ones came before it: from its connection
// or from its address. The attempts of an address are checked one after another, with the delay between two,
// however many connections they come from. A right password does not come back faster than a wrong one.
// Other addresses do not wait.
type Guesses struct {
	After func(d time.Duration, f func()) // time.AfterFunc, if nil
	Clock func() int64                    // ms; if nil, the time of the machine: that of a follower's keyspace stands still without a leader

	Denied  atomic.Int64 // wrong passwords since the start
	pending atomic.Bool  // there are some that no line of the log has counted

	mu        sync.Mutex               // protects what follows
	Addresses map[string]*guessHistory // at most MaxGuessers
	counted   int                      // wrong passwords since the last line
	lastLine  int64                    // ms; 0: there was none
}

// guessHistory holds the wrong passwords of an address.
type guessHistory struct {
	recent  float64 // they count less as time passes: one a second
	at      int64   // of the last one, ms
	next    int64   // when the next attempt may be checked, ms
	counted int     // since the last line of the log
}

const (
	freeGuesses     = 2 // wrong passwords of a connection without a delay: mistakes
	firstDelay      = 100 * time.Millisecond
	LongestDelay    = 2 * time.Second
	FreeOfAddress   = 10 // the same for an address
	firstOfAddress  = 10 * time.Millisecond
	LongestOfAddr   = time.Second
	GuessesToDouble = 4  // of an address
	mostRecent      = 60 // so an address is free of delays after a minute
	MaxGuessers     = 1 << 10
	GuessLineEvery  = 10_000 // ms between two lines of the log
)

// Guesser is a client that may guess passwords.
type Guesser struct {
	From           string        // its address with a port; empty: a Unix socket
	WrongPasswords int           // since the last right one
	AuthWait       chan struct{} // closed when the attempt that waits may be checked; see Guesses
}

// address is the one under which the wrong passwords count. A network of IPv6 is one address, since a machine
// may have all of them.
func (g *Guesser) address() string {
	const network = 64 // bits
	host, _, err := net.SplitHostPort(g.From)
	if err != nil {
		return "unix"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	if ip = ip.Unmap(); ip.Is6() {
		if prefix, err := ip.WithZone("").Prefix(network); err == nil {
			return prefix.String()
		}
	}
	return ip.String()
}

// doubled returns first, doubled times times, and at most longest.
func doubled(first time.Duration, times int, longest time.Duration) time.Duration {
	for ; times > 0 && first < longest; times-- {
		first *= 2
	}
	return min(first, longest)
}

func (t *Guesses) now() int64 {
	if t.Clock != nil {
		return t.Clock()
	}
	return clock.Monotonic().Milliseconds()
}

// Wait returns a channel if the client's attempt to authenticate must wait until it closes.
// The caller then asks again. It returns nil if the attempt may be checked.
func (t *Guesses) Wait(s *Guesser) <-chan struct{} {
	var d time.Duration
	if s.AuthWait != nil {
		select {
		case <-s.AuthWait:
			s.AuthWait = nil
		default:
			return s.AuthWait
		}
	} else if s.WrongPasswords > freeGuesses {
		d = doubled(firstDelay, s.WrongPasswords-freeGuesses-1, LongestDelay)
	}
	if d == 0 {
		d = t.turn(s)
	}
	if d == 0 {
		return nil
	}
	over := make(chan struct{})
	s.AuthWait = over
	if t.After != nil {
		t.After(d, func() { close(over) })
	} else {
		time.AfterFunc(d, func() { close(over) })
	}
	return over
}

// turn returns 0 if an attempt of the client's address may be checked, and takes the turn. Else it returns
// how long it is until the next turn. Those who wait for it do not queue: one of them gets it, and a client
// that has left holds up nobody.
func (t *Guesses) turn(s *Guesser) time.Duration {
	if t.Denied.Load() == 0 {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.Addresses[s.address()]
	if h == nil {
		return 0
	}
	now := t.now()
	recent := int(h.recentAt(now))
	if recent <= FreeOfAddress {
		return 0
	}
	if now < h.next {
		return time.Duration(h.next-now) * time.Millisecond
	}
	h.next = now + doubled(firstOfAddress, (recent-FreeOfAddress)/GuessesToDouble, LongestOfAddr).Milliseconds()
	return 0
}

// NoteRight counts a right password. It gives the turn of its address back: a program that knows the password
// opens many connections without a delay between them.
func (t *Guesses) NoteRight(s *Guesser) {
	s.WrongPasswords = 0
	if t.Denied.Load() == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.Addresses[s.address()]; h != nil {
		h.next = 0
	}
}

func (h *guessHistory) recentAt(now int64) float64 {
	return max(h.recent-float64(max(now-h.at, 0))/1000, 0)
}

// NoteWrong counts a wrong password.
func (t *Guesses) NoteWrong(s *Guesser) {
	s.WrongPasswords++
	t.Denied.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	address, now := s.address(), t.now()
	h := t.Addresses[address]
	if h == nil {
		if len(t.Addresses) >= MaxGuessers {
			t.forgetOldestLocked()
		}
		if t.Addresses == nil {
			t.Addresses = make(map[string]*guessHistory)
		}
		h = new(guessHistory)
		t.Addresses[address] = h
	}
	h.recent, h.at = min(h.recentAt(now)+1, mostRecent), now
	h.counted++
	t.counted++
	t.pending.Store(true)
}

// forgetOldestLocked forgets the address whose last wrong password is the longest ago.
func (t *Guesses) forgetOldestLocked() {
	oldest := ""
	for address, h := range t.Addresses {
		if oldest == "" || h.at < t.Addresses[oldest].at {
			oldest = address
		}
	}
	delete(t.Addresses, oldest)
}

// GuessReport is a line of the log about wrong passwords.
type GuessReport struct {
	Worst   string // the address with most of them
	OfWorst int
	Total   int
	Others  int // addresses besides
}

// Report returns what to log now, if there is anything and the last line is long enough ago.
func (t *Guesses) Report() (r GuessReport, ok bool) {
	if !t.pending.Load() {
		return r, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if t.lastLine != 0 && now-t.lastLine < GuessLineEvery {
		return r, false
	}
	for address, h := range t.Addresses {
		if h.counted == 0 {
			continue
		}
		r.Others++
		if h.counted > r.OfWorst {
			r.Worst, r.OfWorst = address, h.counted
		}
		h.counted = 0
	}
	r.Total, r.Others = t.counted, r.Others-1
	t.counted, t.lastLine = 0, now
	t.pending.Store(false)
	return r, true
}
