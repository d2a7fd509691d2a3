package access

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Reason is why a call is refused. A later one is reported in preference to an earlier one, as in Valkey.
type Reason uint8

const (
	Allowed Reason = iota
	DeniedContainer
	DeniedCommand
	DeniedKey
	DeniedChannel
	DeniedAuth // in the log only: wrong credentials
	reasons
)

var reasonNames = [reasons]string{"", "database", "command", "key", "channel", "auth"}

// String returns the word of ACL LOG.
func (r Reason) String() string { return reasonNames[r] }

// Key is a key of a call, and what the command needs of it.
type Key struct {
	Name string
	Need Permission
}

// Call is a call of a command, as rights look at it.
type Call struct {
	Number     int      // of the command, in the catalogue
	Name       string   // of the command, in full
	Args       []string // with the name
	Containers []string // the names of those that it touches
	All        bool     // it touches all containers
	Keys       []Key
	Unnamed    Permission // what it needs of keys that nobody names; 0: there are none
	Channels   []string
	Patterns   bool // the channels are patterns of PSUBSCRIBE

	// Abandoned, if not nil, reports that nobody waits for the verdict any more. It is asked between keys.
	Abandoned func() bool

	Words []string // for who fills in the call
}

// mostKept is how many keys a call that is reused has room for.
const mostKept = 1 << 10

// Reset empties the call but keeps its memory.
func (c *Call) Reset() {
	clear(c.Keys)
	clear(c.Containers)
	clear(c.Channels)
	clear(c.Words)
	*c = Call{Containers: c.Containers[:0], Keys: c.Keys[:0], Channels: c.Channels[:0], Words: c.Words[:0]}
	if cap(c.Keys) > mostKept {
		c.Keys, c.Words = nil, nil
	}
}

// Verdict says whether a call is allowed, or which object is the reason why not: a container, the command, a
// key or a channel.
type Verdict struct {
	Reason Reason
	Object string
	at     int // the position of the object
}

// Judge returns the verdict on a call.
func (u *User) Judge(c *Call) (worst Verdict) {
	for i, s := range u.sets {
		v := s.judge(c)
		if v.Reason == Allowed {
			return v
		}
		if i == 0 || v.Reason > worst.Reason || v.Reason == worst.Reason && v.at > worst.at {
			worst = v
		}
	}
	return worst
}

// AllowsKey reports whether the root set allows a call of a command that touches one container and one key.
func (u *User) AllowsKey(number int, args []string, container, key string, need Permission) bool {
	s := u.sets[0]
	return s.allowed.allows(number, args) && (s.allWalls || s.containerOf.match(container)) && (s.allKeys || s.keysOf[need].match(key))
}

// MayRead reports whether one of the sets has a container and a key to read. Safe for concurrent use.
func (u *User) MayRead(container, key string) bool {
	return slices.ContainsFunc(u.sets, func(s *Set) bool {
		return (s.allWalls || s.containerOf.match(container)) && (s.allKeys || s.keysOf[Read].match(key))
	})
}

// keysAtOnce is how many keys are judged before the call looks whether it is abandoned.
const keysAtOnce = 1 << 10

func (s *Set) judge(c *Call) Verdict {
	if !s.allowed.allows(c.Number, c.Args) {
		return Verdict{DeniedCommand, c.Name, 0}
	}
	if !s.allWalls {
		if c.All {
			return Verdict{DeniedContainer, "*", 0}
		}
		for i, name := range c.Containers {
			if !s.containerOf.match(name) {
				return Verdict{DeniedContainer, name, i}
			}
		}
	}
	if !s.allKeys {
		if c.Unnamed != 0 && !s.allKeysFor(c.Unnamed) {
			return Verdict{DeniedKey, "*", 0}
		}
		for i, key := range c.Keys {
			if !s.keysOf[key.Need].match(key.Name) {
				return Verdict{DeniedKey, key.Name, i}
			}
			if i%keysAtOnce == keysAtOnce-1 && c.Abandoned != nil && c.Abandoned() {
				return Verdict{DeniedKey, key.Name, i}
			}
		}
	}
	if !s.allChannels {
		for i, channel := range c.Channels {
			if !s.allowsChannel(channel, c.Patterns) {
				return Verdict{DeniedChannel, channel, i}
			}
		}
	}
	return Verdict{}
}

// allKeysFor reports whether a pattern of the set allows every key.
func (s *Set) allKeysFor(need Permission) bool {
	for _, p := range s.keys {
		if p.text == "*" && p.permits&need == need {
			return true
		}
	}
	return false
}

// allowsChannel reports whether the set allows a channel. A pattern must be one of the set's, as it is
// written.
func (s *Set) allowsChannel(channel string, pattern bool) bool {
	switch {
	case s.allChannels:
		return true
	case !pattern:
		return s.channelsOf.match(channel)
	}
	for _, c := range s.channels {
		if c == channel {
			return true
		}
	}
	return false
}

// AllowsChannel reports whether a set of the user allows a channel, or a pattern of channels.
func (u *User) AllowsChannel(channel string, pattern bool) bool {
	for _, s := range u.sets {
		if s.allowsChannel(channel, pattern) {
			return true
		}
	}
	return false
}

// KeepsChannels reports whether the user has all channels, or the patterns of all channels that it had
// before.
func (u *User) KeepsChannels(was *User) bool {
	has := map[string]bool{}
	for _, s := range u.sets {
		if s.allChannels {
			return true
		}
		for _, c := range s.channels {
			has[c] = true
		}
	}
	for _, s := range was.sets {
		if s.allChannels {
			return false
		}
		for _, c := range s.channels {
			if !has[c] {
				return false
			}
		}
	}
	return true
}

// verdicts remembers which containers the user may see.
type verdicts struct {
	known sync.Map // name → bool
	count atomic.Int64
}

// mostVerdicts bounds what a user remembers.
const mostVerdicts = 1 << 12

// SeesAll reports whether a set of the user has all containers.
func (u *User) SeesAll() bool {
	for _, s := range u.sets {
		if s.allWalls {
			return true
		}
	}
	return false
}

// Sees reports whether the user may see a container: one of the sets has it. Safe for concurrent use.
func (u *User) Sees(container string) bool {
	if u.Open || u.SeesAll() {
		return true
	}
	if v, ok := u.verdicts.known.Load(container); ok {
		return v.(bool)
	}
	sees := false
	for _, s := range u.sets {
		sees = sees || s.containerOf.match(container)
	}
	if u.verdicts.count.Add(1) > mostVerdicts {
		u.verdicts.known.Clear()
		u.verdicts.count.Store(0)
	}
	u.verdicts.known.Store(container, sees)
	return sees
}
