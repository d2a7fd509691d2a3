package access

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"mayfly/redisfmt"
)

// The limits of users.
const (
	MostUsers     = 10_000
	MostPasswords = 64       // a user
	MostSelectors = 64       // a user
	MostEntries   = 1_000    // patterns, containers and rules for commands, a user
	MostLine      = 64 << 10 // bytes of a user's line
	MostFile      = 16 << 20 // bytes of a file of users
	mostPattern   = 1 << 10  // bytes
	mostName      = 255      // bytes of a user's name
)

// Error is why a rule or a user is refused, in the words of Redis where Redis has the case.
type Error string

func (e Error) Error() string { return string(e) }

const (
	errSyntax     = Error("Syntax error")
	errNoCommand  = Error("Unknown command or category name in ACL")
	errAllKeys    = Error("Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not have any effect. Try 'resetkeys' to start with an empty list of patterns")
	errAllChans   = Error("Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels")
	errNoPassword = Error("The password you are trying to remove from the user does not exist")
	errHash       = Error("The password hash must be exactly 64 characters and contain only lowercase hexadecimal characters")
	errFirstArg   = Error("Allowing first-arg of a subcommand is not supported")

	errPasswords = Error("too many passwords: legal are up to 64 a user")
	errSelectors = Error("too many selectors: legal are up to 64 a user")
	errEntries   = Error("too many patterns, containers and commands: legal are up to 1000 a user")
	errPattern   = Error("a pattern is too long: legal are up to 1024 bytes")
)

// RuleError says which rule is refused, and why. Why is an [Error].
type RuleError struct {
	Rule string
	Why  error
}

func (e *RuleError) Error() string { return fmt.Sprintf("'%s': %s", e.Rule, e.Why) }
func (e *RuleError) Unwrap() error { return e.Why }

// UnmatchedError says which argument opens a selector that no other closes.
type UnmatchedError struct{ Rule string }

func (e *UnmatchedError) Error() string {
	return "Unmatched parenthesis in acl selector starting at '" + e.Rule + "'."
}

// commandRule allows or denies a command, a subcommand, a command with a first argument, or a category. Its
// name is in lower case: "get", "config|get", "select|0", "@read".
type commandRule struct {
	allow bool
	name  string
}

func (r commandRule) String() string {
	if r.allow {
		return "+" + r.name
	}
	return "-" + r.name
}

// Set is a set of rights. A published one never changes.
type Set struct {
	everything  bool // the commands begin with +@all
	commands    []commandRule
	allKeys     bool
	keys        []keyPattern
	allChannels bool
	channels    []string
	allWalls    bool
	containers  []string // names and patterns, ascending

	// What follows is compiled.
	allowed     *bitmap
	keysOf      keyMatchers
	channelsOf  *matcher
	containerOf *matcher
}

// newSet returns a set without commands, keys and channels.
func newSet() *Set { return &Set{allWalls: true} }

func (s *Set) clone() *Set {
	c := *s
	c.commands, c.keys = slices.Clone(s.commands), slices.Clone(s.keys)
	c.channels, c.containers = slices.Clone(s.channels), slices.Clone(s.containers)
	return &c
}

// compile prepares the set for calls.
func (s *Set) compile(c *Catalogue) {
	s.allowed = c.compile(s.everything, s.commands)
	s.keysOf = newKeyMatchers(s.keys)
	s.channelsOf, s.containerOf = newMatcher(s.channels), newMatcher(s.containers)
}

// entries is how many entries the set has, of those that are limited.
func (s *Set) entries() int {
	return len(s.commands) + len(s.keys) + len(s.channels) + len(s.containers)
}

// apply changes the set as a rule says. The set must not be published.
func (s *Set) apply(c *Catalogue, rule string) error {
	switch strings.ToLower(rule) {
	case "allkeys", "~*":
		s.allKeys, s.keys = true, nil
		return nil
	case "resetkeys":
		s.allKeys, s.keys = false, nil
		return nil
	case "allchannels", "&*":
		s.allChannels, s.channels = true, nil
		return nil
	case "resetchannels":
		s.allChannels, s.channels = false, nil
		return nil
	case "allcommands", "+@all":
		s.everything, s.commands = true, nil
		return nil
	case "nocommands", "-@all":
		s.everything, s.commands = false, nil
		return nil
	case "alldbs":
		s.allWalls, s.containers = true, nil
		return nil
	case "resetdbs":
		s.allWalls, s.containers = false, nil
		return nil
	}
	if len(rule) >= 3 && redisfmt.EqualFold(rule[:3], "db=") {
		return s.setContainers(rule[3:])
	}
	switch rule[0] {
	case '~', '%':
		return s.addKeys(rule)
	case '&':
		return s.addChannel(rule[1:])
	case '+', '-':
		return s.addCommand(c, rule[0] == '+', lower(rule[1:]))
	}
	return errSyntax
}

// addKeys adds the pattern of a rule ~p, %R~p, %W~p or %RW~p. As in Redis, %R is %R~.
func (s *Set) addKeys(rule string) error {
	if s.allKeys {
		return errAllKeys
	}
	permits, text := ReadWrite, rule[1:]
	if rule[0] == '%' {
		letters, pattern, _ := strings.Cut(rule[1:], "~")
		permits, text = 0, pattern
		ok := letters != ""
		for _, letter := range []byte(letters) {
			var p Permission
			switch letter {
			case 'R', 'r':
				p = Read
			case 'W', 'w':
				p = Write
			}
			ok = ok && p != 0 && permits&p == 0
			permits |= p
		}
		if !ok {
			return errSyntax
		}
	}
	if err := checkPattern(text); err != nil {
		return err
	}
	i := slices.IndexFunc(s.keys, func(p keyPattern) bool { return p.text == text })
	if i < 0 {
		i, s.keys = len(s.keys), append(s.keys, keyPattern{text: text})
	}
	s.keys[i].permits |= permits
	return nil
}

func (s *Set) addChannel(pattern string) error {
	if s.allChannels {
		return errAllChans
	}
	if err := checkPattern(pattern); err != nil {
		return err
	}
	if !slices.Contains(s.channels, pattern) {
		s.channels = append(s.channels, pattern)
	}
	return nil
}

// checkPattern returns an error if a pattern of keys or channels is not legal.
func checkPattern(pattern string) error {
	if hasSpaces(pattern) {
		return errSyntax
	}
	if len(pattern) > mostPattern {
		return errPattern
	}
	return nil
}

// hasSpaces reports whether a text has white space or a zero byte, which lines of users cannot hold.
func hasSpaces(text string) bool { return strings.ContainsAny(text, space+"\x00") }

const space = " \t\n\v\f\r"

// fields splits a text at white space of ASCII: other white space is part of a pattern.
func fields(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(space, r) })
}

// lower returns a text with small letters, of ASCII only.
func lower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, text)
}

// setContainers replaces the containers by those of a list with commas.
func (s *Set) setContainers(list string) error {
	entries := strings.Split(list, ",")
	for _, e := range entries {
		if !isContainerPattern(e) {
			return errSyntax
		}
	}
	slices.Sort(entries)
	entries = slices.Compact(entries)
	if s.allWalls, s.containers = slices.Contains(entries, "*"), entries; s.allWalls {
		s.containers = nil
	}
	return nil
}

// isContainerPattern reports whether a text is the name of a container, or a pattern of names with *, ? and
// classes.
func isContainerPattern(text string) bool {
	inClass, begin := false, 0
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("_.:-", c) >= 0:
		case (c == '*' || c == '?') && !inClass:
		case c == '[' && !inClass:
			inClass, begin = true, i
		case c == '^' && inClass && i == begin+1:
		case c == ']' && inClass && i > begin+1 && text[i-1] != '^':
			inClass = false
		default:
			return false
		}
	}
	return text != "" && len(text) <= mostPattern && !inClass
}

// addCommand adds a rule on a command or category. The rule's old place in the list goes, and that of its
// opposite. A command swallows its subcommands and first arguments.
func (s *Set) addCommand(c *Catalogue, allow bool, name string) error {
	if err := c.check(allow, name); err != nil {
		return err
	}
	s.commands = slices.DeleteFunc(s.commands, func(r commandRule) bool {
		return r.name == name || strings.HasPrefix(r.name, name+"|")
	})
	s.commands = append(s.commands, commandRule{allow, name})
	return nil
}

// check returns an error if no rule can have the name.
func (c *Catalogue) check(allow bool, name string) error {
	if category, ok := strings.CutPrefix(name, "@"); ok {
		if _, known := c.categories[category]; !known {
			return errNoCommand
		}
		return nil
	}
	if _, ok := c.byName[name]; ok {
		return nil
	}
	bar := strings.LastIndexByte(name, '|')
	if bar < 0 || !allow {
		return errNoCommand
	}
	command, word := name[:bar], name[bar+1:]
	n, ok := c.byName[command]
	switch {
	case !ok:
		return errNoCommand
	case c.commands[n].Parent >= 0:
		return errFirstArg
	case word == "":
		return errSyntax
	case hasSpaces(word):
		return errSyntax
	case len(word) > mostPattern:
		return errPattern
	case len(c.children[n]) > 0:
		return errNoCommand
	}
	return nil
}

// User is a user. It never changes once it is published.
type User struct {
	Name   string
	on     bool
	noPass bool
	hashes []string // of the passwords, in hexadecimal digits
	sets   []*Set   // the first is the root
	// Open says that the root set allows everything.
	Open bool

	verdicts verdicts
}

// newUser returns a user without rights but, if allChannels says so, that on channels.
func newUser(name string, allChannels bool) *User {
	u := &User{Name: strings.Clone(name), sets: []*Set{newSet()}}
	u.sets[0].allChannels = allChannels
	return u
}

// changed returns the user as it is after rules. The user stays as it is. allChannels is the default for the
// rule reset.
func (u *User) changed(c *Catalogue, rules []string, allChannels bool) (*User, error) {
	rules, err := mergeSelectors(rules)
	if err != nil {
		return nil, err
	}
	next := &User{Name: u.Name, on: u.on, noPass: u.noPass, hashes: slices.Clone(u.hashes), sets: slices.Clone(u.sets)}
	next.sets[0] = u.sets[0].clone()
	for _, rule := range rules {
		if err := next.apply(c, rule, allChannels); err != nil {
			return nil, &RuleError{rule, err}
		}
	}
	return next, next.finish(c)
}

// finish prepares the user for calls.
func (u *User) finish(c *Catalogue) error {
	for _, s := range u.sets {
		if s.allowed == nil || s == u.sets[0] {
			s.compile(c)
		}
	}
	root := u.sets[0]
	u.Open = root.allowed.all && root.allKeys && root.allChannels && root.allWalls
	if len(u.Line()) > MostLine {
		return Error(fmt.Sprintf("the rules of user '%s' are too long: legal are up to %d bytes", u.Name, MostLine))
	}
	return nil
}

// apply changes the user as a rule says.
func (u *User) apply(c *Catalogue, rule string, allChannels bool) error {
	switch strings.ToLower(rule) {
	case "", "sanitize-payload", "skip-sanitize-payload":
		return nil
	case "on":
		u.on = true
		return nil
	case "off":
		u.on = false
		return nil
	case "nopass":
		u.noPass, u.hashes = true, nil
		return nil
	case "resetpass":
		u.noPass, u.hashes = false, nil
		return nil
	case "clearselectors":
		u.sets = u.sets[:1]
		return nil
	case "reset":
		u.on, u.noPass, u.hashes = false, false, nil
		u.sets = []*Set{newSet()}
		u.sets[0].allChannels = allChannels
		return nil
	}
	switch {
	case strings.IndexByte("><#!", rule[0]) >= 0:
		return u.changePassword(rule[0], rule[1:])
	case rule[0] == '(' && rule[len(rule)-1] == ')':
		return u.addSelector(c, rule[1:len(rule)-1])
	}
	if err := u.sets[0].apply(c, rule); err != nil {
		return err
	}
	return u.checkEntries()
}

// checkEntries returns an error if the user has too many entries.
func (u *User) checkEntries() error {
	n := 0
	for _, s := range u.sets {
		n += s.entries()
	}
	if n > MostEntries {
		return errEntries
	}
	return nil
}

// changePassword adds (>, #) or removes (<, !) a password (>, <) or its hash (#, !).
func (u *User) changePassword(sign byte, text string) error {
	hash := text
	if sign == '>' || sign == '<' {
		hash = hashOf(text)
	} else if len(hash) != 2*sha256.Size || strings.Trim(hash, "0123456789abcdef") != "" {
		return errHash
	}
	i := slices.Index(u.hashes, hash)
	switch {
	case sign == '>' || sign == '#':
		if u.noPass = false; i < 0 {
			if len(u.hashes) == MostPasswords {
				return errPasswords
			}
			u.hashes = append(u.hashes, strings.Clone(hash))
		}
	case i < 0:
		return errNoPassword
	default:
		u.hashes = slices.Delete(u.hashes, i, i+1)
	}
	return nil
}

// hashOf returns the SHA-256 of a password in hexadecimal digits.
func hashOf(password string) string {
	sum := sha256.Sum256([]byte(password))
	return hex.EncodeToString(sum[:])
}

// addSelector adds a set with the rules between the parentheses.
func (u *User) addSelector(c *Catalogue, rules string) error {
	s := newSet()
	for _, rule := range fields(rules) {
		if strings.HasSuffix(rule, ")") { // in the line of the user it would end the selector
			return errSyntax
		}
		if err := s.apply(c, rule); err != nil {
			return err
		}
	}
	if len(u.sets) > MostSelectors {
		return errSelectors
	}
	u.sets = append(u.sets, s)
	return u.checkEntries()
}

// mergeSelectors joins the arguments of each selector to one.
func mergeSelectors(rules []string) (merged []string, err error) {
	open := -1 // the first argument of a selector that is not closed
	for i, rule := range rules {
		rule = strings.Clone(rule)
		closes := strings.HasSuffix(rule, ")")
		switch {
		case open >= 0 && closes:
			merged, open = append(merged, strings.Join(rules[open:i+1], " ")), -1
		case open < 0 && strings.HasPrefix(rule, "(") && !closes:
			open = i
		case open < 0:
			merged = append(merged, rule)
		}
	}
	if open >= 0 {
		return nil, &UnmatchedError{rules[open]}
	}
	return merged, nil
}

// CheckName returns an error if a user cannot have the name.
func CheckName(name string) error {
	switch {
	case hasSpaces(name):
		return Error("Usernames can't contain spaces or null characters")
	case len(name) > mostName:
		return Error(fmt.Sprintf("the name of a user of %d bytes is too long: legal are up to %d", len(name), mostName))
	}
	return nil
}
