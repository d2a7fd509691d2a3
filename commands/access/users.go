package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// DefaultName is the name of the user that a connection begins with.
const DefaultName = "default"

// Table is all users at one time. It never changes.
type Table struct {
	users map[string]*User
	// Restricted says that a user may not do everything.
	Restricted bool
	needsLogin bool
	digest     func() string
}

// Digest returns a digest of all users, the same on nodes with the same ones. It depends on the hashes of
// passwords: who knows all else of the users can use it to guess them.
func (t *Table) Digest() string { return t.digest() }

// User returns the user with a name, nil if there is none.
func (t *Table) User(name string) *User { return t.users[name] }

// Default returns the user default.
func (t *Table) Default() *User { return t.users[DefaultName] }

// NeedsLogin reports whether a connection begins without a user.
func (t *Table) NeedsLogin() bool { return t.needsLogin }

// Guarded reports whether a user has a password, or is off: somebody may guess.
func (t *Table) Guarded() bool { return t.NeedsLogin() || len(t.users) > 1 }

// All returns the users by ascending name.
func (t *Table) All() []*User {
	return slices.SortedFunc(maps.Values(t.users), func(a, b *User) int { return strings.Compare(a.Name, b.Name) })
}

// Lines returns the lines of all users by ascending name.
func (t *Table) Lines() []string {
	all := t.All()
	lines := make([]string, len(all))
	for i, u := range all {
		lines[i] = u.Line()
	}
	return lines
}

func newTable(users map[string]*User) *Table {
	t := &Table{users: users}
	d := t.Default()
	t.needsLogin = !d.on || !d.noPass
	t.digest = sync.OnceValue(func() string { return hashOf(strings.Join(t.Lines(), "\n")) })
	for _, u := range users {
		t.Restricted = t.Restricted || !u.Open
	}
	return t
}

// Users is the users of a server. Safe for concurrent use.
type Users struct {
	Catalogue *Catalogue
	Log       Log

	// AllChannels makes new users begin with all channels (acl-pubsub-default).
	AllChannels atomic.Bool
	// Unsaved says that a restart would lose changes.
	Unsaved atomic.Bool

	// Unproven, if not nil, is why there can be no users but a default who may do everything: any process may
	// claim to be one. It is set before the first change.
	Unproven error

	table atomic.Pointer[Table]
	mu    sync.Mutex // one change at a time
}

// NewUsers returns users of which there is only the default, who may do everything without a password.
func NewUsers(c *Catalogue) *Users {
	us := &Users{Catalogue: c}
	us.table.Store(newTable(map[string]*User{DefaultName: us.newDefault()}))
	return us
}

// newDefault returns the user default as it is at first.
func (us *Users) newDefault() *User {
	u, err := newUser(DefaultName, true).changed(us.Catalogue, []string{"on", "nopass", "~*", "&*", "+@all"}, true)
	if err != nil {
		panic(err) // the rules are legal
	}
	return u
}

// Table returns the users as they are now.
func (us *Users) Table() *Table { return us.table.Load() }

// Set changes a user by rules, or makes one. After an error nothing has changed. was is the user as it was,
// nil if it is new.
func (us *Users) Set(name string, rules []string) (was, is *User, err error) {
	if err := CheckName(name); err != nil {
		return nil, nil, err
	}
	us.mu.Lock()
	defer us.mu.Unlock()
	t := us.Table()
	base := t.users[name]
	if was = base; was == nil {
		if len(t.users) >= MostUsers {
			return nil, nil, Error(fmt.Sprintf("there are %d users already: legal are up to %d", len(t.users), MostUsers))
		}
		base = newUser(name, us.AllChannels.Load())
	}
	if is, err = base.changed(us.Catalogue, rules, us.AllChannels.Load()); err != nil {
		return nil, nil, err
	}
	users := maps.Clone(t.users)
	users[is.Name] = is
	if err := us.publish(users); err != nil {
		return nil, nil, err
	}
	us.Unsaved.Store(true)
	return was, is, nil
}

// publish makes users those of now.
func (us *Users) publish(users map[string]*User) error {
	t := newTable(users)
	if us.Unproven != nil && (t.Restricted || t.Guarded()) {
		return us.Unproven
	}
	us.table.Store(t)
	return nil
}

// Delete removes users and returns the names of those that there were.
func (us *Users) Delete(names []string) (gone []string, err error) {
	if slices.Contains(names, DefaultName) {
		return nil, Error("The 'default' user cannot be removed")
	}
	us.mu.Lock()
	defer us.mu.Unlock()
	users := maps.Clone(us.Table().users)
	for _, name := range names {
		if u := users[name]; u != nil {
			gone = append(gone, u.Name)
			delete(users, name)
		}
	}
	if len(gone) > 0 {
		us.table.Store(newTable(users))
		us.Unsaved.Store(true)
	}
	return gone, nil
}

// SetDefaultPassword gives the user default a password (requirepass); empty: it needs none.
func (us *Users) SetDefaultPassword(password string) error {
	rules := []string{"nopass"}
	if password != "" {
		rules = []string{"resetpass", ">" + password}
	}
	unsaved := us.Unsaved.Load()
	_, _, err := us.Set(DefaultName, rules)
	us.Unsaved.Store(unsaved) // CONFIG SET does not count as a change of users
	return err
}

// Load replaces all users by those of the lines of a file, which the errors name. After an error nothing has
// changed. was is the table as it was.
func (us *Users) Load(file, text string) (was *Table, err error) {
	us.mu.Lock()
	defer us.mu.Unlock()
	was = us.Table()
	users, faults := us.parse(file, text)
	if faults != "" {
		return was, Error(faults + "WARNING: ACL errors detected, no change to the previously active ACL rules was performed")
	}
	if users[DefaultName] == nil {
		users[DefaultName] = us.newDefault()
	}
	if err := us.publish(users); err != nil {
		return was, err
	}
	us.Unsaved.Store(false)
	return was, nil
}

// parse reads the lines of a file of users, and returns what is wrong with them in the words of Redis.
func (us *Users) parse(file, text string) (map[string]*User, string) {
	if len(text) > MostFile {
		return nil, fmt.Sprintf("%s: %d bytes: legal are up to %d. ", file, len(text), MostFile)
	}
	users := map[string]*User{}
	var faults strings.Builder
	number := 0
	for line := range strings.Lines(text) {
		number++
		words := fields(line)
		if len(words) == 0 {
			continue
		}
		if strings.HasPrefix(strings.TrimLeft(line, space), "user  ") {
			words = slices.Insert(words, 1, "") // the name is empty
		}
		u, fault := us.parseLine(file, number, words, users)
		faults.WriteString(fault)
		if u != nil {
			users[u.Name] = u
		}
	}
	return users, faults.String()
}

func (us *Users) parseLine(file string, number int, words []string, users map[string]*User) (*User, string) {
	fault := func(format string, parts ...any) (*User, string) {
		return nil, fmt.Sprintf("%s:%d", file, number) + fmt.Sprintf(format, parts...)
	}
	if words[0] != "user" || len(words) < 2 {
		return fault(" should start with user keyword followed by the username. ")
	}
	name := words[1]
	if CheckName(name) != nil {
		return nil, fmt.Sprintf("'%s:%d: username '%s' contains invalid characters. ", file, number, name)
	}
	if users[name] != nil {
		return nil, fmt.Sprintf("WARNING: Duplicate user '%s' found on line %d. ", name, number)
	}
	if len(users) >= MostUsers {
		return fault(": too many users: legal are up to %d. ", MostUsers)
	}
	u, err := newUser(name, us.AllChannels.Load()).changed(us.Catalogue, words[2:], us.AllChannels.Load())
	switch err := err.(type) {
	case nil:
		return u, ""
	case *UnmatchedError:
		return fault(": Unmatched parenthesis in selector definition.")
	case *RuleError:
		return fault(": %s. ", err.Why)
	default:
		return fault(": %s. ", err)
	}
}

// LoadLines replaces all users by those of lines of the configuration: the words after "user". The error has
// the words of Redis.
func (us *Users) LoadLines(lines [][]string) error {
	us.mu.Lock()
	defer us.mu.Unlock()
	users := maps.Clone(us.Table().users)
	seen := map[string]bool{}
	for _, words := range lines {
		name := words[0]
		if err := CheckName(name); err != nil {
			return err
		}
		if seen[name] {
			return Error("Duplicate user found. A user can only be defined once in config files")
		}
		seen[name] = true
		u, err := newUser(name, us.AllChannels.Load()).changed(us.Catalogue, words[1:], us.AllChannels.Load())
		if rule, ok := err.(*RuleError); ok {
			return Error(fmt.Sprintf("Error loading ACL rule '%s' for the user named '%s': %s", rule.Rule, name, rule.Why))
		}
		if err != nil {
			return err
		}
		users[name] = u
	}
	if len(users) > MostUsers {
		return Error(fmt.Sprintf("%d users: legal are up to %d", len(users), MostUsers))
	}
	return us.publish(users)
}

// dummy is what the password of an unknown user is compared with.
var dummy = strings.Repeat("0", 2*sha256.Size)

// Authenticate returns the user if the password is right and the user is on, else nil. Its time depends
// neither on whether the user exists, nor on the password.
func (us *Users) Authenticate(name, password string) *User {
	u := us.Table().users[name]
	hash := hashOf(password)
	hashes := []string{dummy}
	if u != nil && len(u.hashes) > 0 {
		hashes = u.hashes
	}
	right := 0
	for _, h := range hashes {
		right |= subtle.ConstantTimeCompare([]byte(h), []byte(hash))
	}
	if u == nil || !u.on || !u.noPass && (right == 0 || len(u.hashes) == 0) {
		return nil
	}
	return u
}

// identity is who a session is, for other goroutines.
type identity struct {
	users *Users // nil: it has not run a command yet
	name  string
}

// Holder is what a session knows of its user. It belongs to the session's goroutine, but for Name. The zero
// value is that of a session that has not asked for its rights yet.
type Holder struct {
	Call    Call // reused by the session's calls
	Vouched bool // another node has authenticated the user: here it must be on

	who   atomic.Pointer[identity] // nil: the default, before its first command
	users *Users
	table *Table
	user  *User
	open  bool
}

// Open reports whether the user may do everything, and still the same user with the same rights as at the
// last Refresh. It costs a load, a comparison and a branch.
func (h *Holder) Open() bool { return h.open && h.users.table.Load() == h.table }

// Refresh looks up the user in the table of now. identified says that the session needs no login, or has had
// it.
func (h *Holder) Refresh(us *Users, authenticated bool) (u *User, identified bool) {
	if t := us.Table(); t != h.table || us != h.users {
		h.users, h.table, h.user = us, t, t.User(h.Name())
		if who := h.who.Load(); who == nil || who.users != us {
			h.who.Store(&identity{us, h.Name()})
		}
	}
	identified = (authenticated || !h.table.NeedsLogin()) && h.user != nil && (!h.Vouched || h.user.on)
	h.open = identified && h.user.Open
	return h.user, identified
}

// Name returns the name of the user. Safe for concurrent use.
func (h *Holder) Name() string {
	if who := h.who.Load(); who != nil {
		return who.name
	}
	return DefaultName
}

// Become makes the session one of a user.
func (h *Holder) Become(name string) {
	h.who.Store(&identity{h.users, strings.Clone(name)})
	h.table, h.open = nil, false
}

// Sees reports whether the user may see a container, by the rights of the running command. A session without
// a user is one of the server itself.
func (h *Holder) Sees(container string) bool { return h.user == nil || h.user.Sees(container) }

// SeesAll reports whether the user may see all containers.
func (h *Holder) SeesAll() bool { return h.user == nil || h.user.Open || h.user.SeesAll() }

// OpenNow reports whether the user may do everything, by the rights of now. Safe for concurrent use.
func (h *Holder) OpenNow() bool {
	who := h.who.Load()
	if who == nil || who.users == nil {
		return true
	}
	u := who.users.Table().User(who.name)
	return u != nil && u.Open
}

// MayReadNow reports whether the user may read a key of a container, by the rights of now. Safe for
// concurrent use.
func (h *Holder) MayReadNow(container, key string) bool {
	who := h.who.Load()
	if who == nil || who.users == nil {
		return true
	}
	u := who.users.Table().User(who.name)
	return u != nil && u.MayRead(container, key)
}

// SeesNow reports whether the user may see all of some containers, by the rights of now. Safe for concurrent
// use.
func (h *Holder) SeesNow(containers []string) bool {
	who := h.who.Load()
	if len(containers) == 0 || who == nil || who.users == nil {
		return true
	}
	t := who.users.Table()
	if !t.Restricted {
		return true
	}
	u := t.User(who.name)
	for _, c := range containers {
		if u == nil || !u.Sees(c) {
			return false
		}
	}
	return true
}
