package config

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"mayfly/commands/access"
	"mayfly/commands/engine"
	"mayfly/redisfmt"
)

// Config holds the server's options and changes them while it runs. Safe for concurrent use.
type Config struct {
	current atomic.Pointer[Settings]

	ignored, links []string // see LogIgnored; fixed by Load

	users *access.Users

	mu    sync.Mutex // one change at a time; protects hooks
	hooks map[string][]func(*Settings) error
}

// New makes a configuration of settings, which must not change any more.
func New(s *Settings) *Config {
	c := &Config{hooks: make(map[string][]func(*Settings) error), users: newUsers()}
	c.current.Store(s)
	c.beginUsers(s)
	return c
}

// Settings returns the values of all options now.
func (c *Config) Settings() *Settings { return c.current.Load() }

// OnChange makes CONFIG SET of an option call apply with the new settings, before others see them. If
// apply returns an error, nothing changes. Options of the same command that were applied already are
// applied again with the old settings. Only the first hook of an option may return an error.
func (c *Config) OnChange(option string, apply func(*Settings) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hooks[option] = append(c.hooks[option], apply)
}

// ConfigGet returns name and value of every option whose name matches one of the glob patterns, each
// once. As in Redis, a name without wildcards comes back as it was written.
func (c *Config) ConfigGet(patterns []string) [][2]string {
	settings := *c.current.Load() // the table's values point into it
	compiled := make([]*redisfmt.Pattern, len(patterns))
	for i, pattern := range patterns {
		compiled[i] = redisfmt.Compile(strings.ToLower(pattern))
	}
	var found [][2]string
	for _, o := range Options {
		for i, pattern := range patterns {
			name := o.Name
			if strings.EqualFold(pattern, name) {
				name = pattern
			} else if !compiled[i].Match(name) {
				continue
			}
			found = append(found, [2]string{name, o.in(&settings).String()})
			break
		}
	}
	return found
}

// ConfigSet changes options, all or none. Errors are in Redis' words.
func (c *Config) ConfigSet(pairs [][2]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.current.Load()
	next := *was
	options, err := mutable(pairs)
	if err != nil {
		return err
	}
	for _, mirrors := range []bool{false, true} { // those last that must have the value of another
		for i, o := range options {
			if o.isMirror() != mirrors {
				continue
			}
			if err := o.in(&next).Set(pairs[i][1]); err != nil {
				return setFailed(o.Name, err)
			}
		}
	}
	if err := next.checkProof(false); err != nil {
		return setFailed(pairs[0][0], err)
	}
	// The addresses come behind the ports that they are for, and the password last, so that it is never undone:
	// its old value is not the password that a line or file of users gave.
	for _, name := range []string{"bind", "requirepass"} {
		if i := slices.Index(options, lookUpOption(name)); i >= 0 {
			options = append(slices.Delete(options, i, i+1), lookUpOption(name))
		}
	}
	for i, o := range options {
		if err := c.applyLocked(o, was, &next); err != nil {
			for _, done := range options[:i] {
				_ = c.applyLocked(done, &next, was) // the old value was legal
			}
			return setFailed(o.Name, err)
		}
	}
	c.current.Store(&next)
	return nil
}

// applyLocked puts an option into force that differs between two settings, or whose file may differ. c.mu
// must be held.
func (c *Config) applyLocked(o *Option, from, to *Settings) error {
	if !o.Reread && o.in(from).String() == o.in(to).String() {
		return nil
	}
	for _, apply := range c.hooks[o.Name] {
		if err := apply(to); err != nil {
			return err
		}
	}
	return nil
}

// mutable looks up options for CONFIG SET, which must be mutable.
func mutable(pairs [][2]string) ([]*Option, error) {
	options := make([]*Option, len(pairs))
	for i, pair := range pairs {
		o := lookUpOption(pair[0])
		switch {
		case o == nil:
			name, _, _ := strings.Cut(pair[0], "\x00") // Redis shows no more of it
			if slices.Contains(strings.Fields(redisImmutable), strings.ToLower(name)) {
				return nil, setFailed(name, errImmutable)
			}
			return nil, engine.Error("ERR Unknown option or number of arguments for CONFIG SET - '" + name + "'")
		case !o.Mutable:
			return nil, setFailed(pair[0], errImmutable)
		case slices.ContainsFunc(options[:i], func(other *Option) bool { return other.named() == o.named() }):
			return nil, setFailed(o.Name, errDuplicate)
		}
		options[i] = o
	}
	return options, nil
}

// setFailed is the error of CONFIG SET of an option, by its name, or as the client wrote it where Redis shows
// that.
func setFailed(option string, why error) error {
	return engine.Error(fmt.Sprintf("ERR CONFIG SET failed (possibly related to argument '%s') - %v", option, why))
}

// lookUpOption finds an option by its name in any case; nil if there is none.
func lookUpOption(name string) *Option {
	for i := range Options {
		if strings.EqualFold(Options[i].Name, name) {
			return &Options[i]
		}
	}
	return nil
}

// Listening records the ports that the server got where an option says auto.
func (c *Config) Listening(port, tlsPort int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := *c.current.Load()
	next.Port, next.TLSPort = port, tlsPort
	c.current.Store(&next)
}

// KeepIn records the folder that holds the data, in place of what dir says.
func (c *Config) KeepIn(dir string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := *c.current.Load()
	next.Dir, next.dirOption = dir, next.Dir
	c.current.Store(&next)
}

// MaxValueSize is the size of the largest value and document in bytes.
func (c *Config) MaxValueSize() int { return c.current.Load().MaxValueSize }
