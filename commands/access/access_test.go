package access

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mayfly/redisfmt"
)

// small is a catalogue with every shape of command.
var small = NewCatalogue([]Command{
	{Name: "get", Parent: -1, Categories: []string{"read", "string", "fast"}},
	{Name: "set", Parent: -1, Categories: []string{"write", "string", "slow"}},
	{Name: "select", Parent: -1, Categories: []string{"fast", "connection"}},
	{Name: "config", Parent: -1, Categories: []string{"slow"}},
	{Name: "config|get", Parent: 3, Categories: []string{"admin", "slow", "dangerous"}},
	{Name: "config|set", Parent: 3, Categories: []string{"admin", "slow", "dangerous"}},
	{Name: "publish", Parent: -1, Categories: []string{"pubsub", "fast"}},
	{Name: "psubscribe", Parent: -1, Categories: []string{"pubsub", "slow"}},
}, []string{"stream"})

// change applies rules to a new user.
func change(t *testing.T, rules ...string) *User {
	t.Helper()
	u, err := newUser("u", false).changed(small, rules, false)
	if err != nil {
		t.Fatalf("%q: %v", rules, err)
	}
	return u
}

func TestLine(t *testing.T) {
	t.Parallel()
	const hash = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" // of a
	for _, tt := range []struct{ rules, want string }{
		{"", "off resetchannels -@all"},
		{"on >a ~a* %R~b* &c* db=orders,carts* +@read (~x* +get)",
			"on #" + hash + " ~a* %R~b* resetchannels &c* db=carts*,orders -@all +@read (~x* resetchannels -@all +get)"},
		{"nopass +@all ~* &*", "off nopass ~* &* +@all"},
		{">a nopass", "off nopass resetchannels -@all"},
		{"nopass >a <a", "off resetchannels -@all"},
		{"resetdbs", "off resetchannels resetdbs -@all"},
		{"db=a,b db=c", "off resetchannels db=c -@all"},
		{"db=b,a,b", "off resetchannels db=a,b -@all"},
		{"db=*", "off resetchannels -@all"},
		{"db=*,a", "off resetchannels -@all"},
		{"db=[a-c]?,16", "off resetchannels db=16,[a-c]? -@all"},
		{"%R~a %W~a %RW~b", "off ~a ~b resetchannels -@all"},
		{"%R~* %W~*", "off ~* resetchannels -@all"},
		{"~x ~* resetkeys ~y", "off ~y resetchannels -@all"},
		// The list of commands is Redis 7.2's.
		{"+get +@read +get", "off resetchannels -@all +@read +get"},
		{"+get -get", "off resetchannels -@all -get"},
		{"+config|get +config", "off resetchannels -@all +config"},
		{"+config -config|set", "off resetchannels -@all +config -config|set"},
		{"+SELECT|0 +select|1 -select", "off resetchannels -@all -select"},
		{"+get +@all -@admin", "off resetchannels +@all -@admin"},
		{"+get nocommands", "off resetchannels -@all"},
		{"%R ~a %w~", "off ~ ~a resetchannels -@all"},
		{"on ~a (+get) reset", "off resetchannels -@all"},
		{"(+get) (+set ~b) clearselectors", "off resetchannels -@all"},
		{"( ~a +get )", "off resetchannels -@all (~a resetchannels -@all +get)"},
		{"sanitize-payload skip-sanitize-payload", "off resetchannels -@all"},
	} {
		rules := strings.Split(tt.rules, " ")
		if got := change(t, rules...).Line(); got != "user u "+tt.want {
			t.Errorf("%s:\n got %s\nwant user u %s", tt.rules, got, tt.want)
		}
	}
}

func TestRefusedRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		rules []string
		want  error
	}{
		{[]string{"foo"}, errSyntax}, {[]string{"%"}, errSyntax}, {[]string{"%RX"}, errSyntax}, {[]string{"%~x"}, errSyntax}, {[]string{"%RR~x"}, errSyntax},
		{[]string{"%X~x"}, errSyntax}, {[]string{"~a b"}, errSyntax}, {[]string{"&a\x00"}, errSyntax},
		{[]string{"+"}, errNoCommand}, {[]string{"+nosuch"}, errNoCommand}, {[]string{"-select|0"}, errNoCommand},
		{[]string{"+@nosuch"}, errNoCommand}, {[]string{"+config|nosuch"}, errNoCommand}, {[]string{"+select|"}, errSyntax},
		{[]string{"+config|get|x"}, errFirstArg}, {[]string{"~*", "~x"}, errAllKeys}, {[]string{"&*", "&x"}, errAllChans},
		{[]string{"<a"}, errNoPassword}, {[]string{"#A"}, errHash}, {[]string{"!" + strings.Repeat("g", 64)}, errHash},
		{[]string{"db="}, errSyntax}, {[]string{"db=a,"}, errSyntax}, {[]string{"db=a/b"}, errSyntax}, {[]string{"db=[a"}, errSyntax},
		{[]string{"db=[]"}, errSyntax}, {[]string{"db=a]"}, errSyntax}, {[]string{"(~a) +get)"}, errSyntax}, {[]string{"(on)"}, errSyntax},
		{[]string{"~" + strings.Repeat("x", mostPattern+1)}, errPattern},
		{many("~k%d", MostEntries+1), errEntries}, {many("(~k%d)", MostSelectors+1), errSelectors}, {many(">k%d", MostPasswords+1), errPasswords},
	} {
		u := change(t, "on", "~x", "+get")
		got, err := u.changed(small, append([]string{"resetkeys"}, tt.rules...), false)
		rule, ok := err.(*RuleError)
		if !ok || rule.Why != tt.want || len(tt.rules) < 10 && rule.Rule != tt.rules[len(tt.rules)-1] || got != nil {
			t.Errorf("%.100q: got %v, %v, want %v", tt.rules, got, err, tt.want)
		}
		if line := u.Line(); line != "user u on ~x resetchannels -@all +get" {
			t.Errorf("%.100q changed the user to %s", tt.rules, line)
		}
	}
	if _, err := newUser("u", false).changed(small, []string{"(~a", "+get"}, false); fmt.Sprint(err) != "Unmatched parenthesis in acl selector starting at '(~a'." {
		t.Error(err)
	}
	if _, err := newUser("u", false).changed(small, many("~"+strings.Repeat("x", 500)+"%d", 200), false); !strings.Contains(fmt.Sprint(err), "too long") {
		t.Error(err)
	}
}

// many returns n rules of a format.
func many(format string, n int) (rules []string) {
	for i := range n {
		rules = append(rules, fmt.Sprintf(format, i))
	}
	return rules
}

// TestReported shows which of several reasons is reported.
func TestReported(t *testing.T) {
	t.Parallel()
	call := &Call{Number: 0, Name: "get", Args: []string{"get", "k"}, Containers: []string{"0"}, Keys: []Key{{"j", Read}, {"k", Read}}}
	for _, tt := range []struct{ rules, want string }{
		{"-@all", "command get"},
		{"+get resetdbs", "database 0"},
		{"+get db=1", "database 0"},
		{"+get ~j", "key k"},
		{"+get %W~*", "key j"},
		{"+get ~* db=1 (~*)", "command get"},
		{"+get ~* db=1 (+get ~j)", "key k"},
		{"+get (+get ~j) (+get ~k)", "key k"},
		{"+get (+get ~j ~k)", " "},
		{"+get ~j (~k)", "key k"},
	} {
		v := change(t, strings.Split(tt.rules, " ")...).Judge(call)
		if got := v.Reason.String() + " " + v.Object; got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.rules, got, tt.want)
		}
	}
}

// naive is a set of rights that does what each rule says at once.
type naive struct {
	commands    map[string]bool
	firstArgs   map[string]bool // "select|0"
	keys        []keyPattern
	channels    []string
	containers  []string
	allKeys     bool
	allChannels bool
	allWalls    bool
}

func newNaive() *naive {
	return &naive{commands: map[string]bool{}, firstArgs: map[string]bool{}, allWalls: true}
}

func (n *naive) allow(name string, allow bool) {
	for _, c := range small.commands {
		if c.Name == name || strings.HasPrefix(c.Name, name+"|") {
			n.commands[c.Name] = allow
		}
	}
	for word := range n.firstArgs {
		if strings.HasPrefix(word, name+"|") {
			delete(n.firstArgs, word)
		}
	}
}

func (n *naive) apply(rule string) {
	_, pattern, _ := strings.Cut(rule, "~")
	switch {
	case rule == "~*", rule == "allkeys":
		n.allKeys, n.keys = true, nil
	case rule == "resetkeys":
		n.allKeys, n.keys = false, nil
	case rule == "&*":
		n.allChannels, n.channels = true, nil
	case rule == "resetchannels":
		n.allChannels, n.channels = false, nil
	case rule == "+@all", rule == "-@all":
		for _, c := range small.commands {
			n.allow(c.Name, rule == "+@all")
		}
	case rule == "alldbs", rule == "db=*":
		n.allWalls = true
	case rule == "resetdbs":
		n.allWalls, n.containers = false, nil
	case strings.HasPrefix(rule, "db="):
		n.allWalls, n.containers = false, strings.Split(rule[3:], ",")
	case strings.HasPrefix(rule, "%R~"):
		n.keys = append(n.keys, keyPattern{pattern, Read})
	case strings.HasPrefix(rule, "%W~"):
		n.keys = append(n.keys, keyPattern{pattern, Write})
	case rule[0] == '~':
		n.keys = append(n.keys, keyPattern{pattern, ReadWrite})
	case rule[0] == '&':
		n.channels = append(n.channels, rule[1:])
	case rule[1] == '@':
		for _, c := range small.commands {
			if slices.Contains(c.Categories, rule[2:]) {
				n.allow(c.Name, rule[0] == '+')
			}
		}
	case strings.HasPrefix(rule, "+select|"):
		n.firstArgs[rule[1:]] = true
	default:
		n.allow(rule[1:], rule[0] == '+')
	}
}

func (n *naive) judge(c *Call) Reason {
	if !n.commands[c.Name] && !(len(c.Args) > 1 && n.firstArgs[c.Name+"|"+c.Args[1]]) {
		return DeniedCommand
	}
	for _, name := range c.Containers {
		if !n.allWalls && !slices.ContainsFunc(n.containers, func(p string) bool { return redisfmt.Compile(p).Match(name) }) {
			return DeniedContainer
		}
	}
	for _, k := range c.Keys {
		var got Permission
		fits := slices.ContainsFunc(n.keys, func(p keyPattern) bool {
			// Rules on the same pattern add up.
			got = 0
			for _, q := range n.keys {
				if q.text == p.text {
					got |= q.permits
				}
			}
			return got&k.Need == k.Need && redisfmt.Compile(p.text).Match(k.Name)
		})
		if !n.allKeys && !fits {
			return DeniedKey
		}
	}
	for _, channel := range c.Channels {
		fits := func(p string) bool { return redisfmt.Compile(p).Match(channel) }
		if c.Patterns {
			fits = func(p string) bool { return p == channel }
		}
		if !n.allChannels && !slices.ContainsFunc(n.channels, fits) {
			return DeniedChannel
		}
	}
	return Allowed
}

var (
	setRules = []string{"~*", "resetkeys", "&*", "resetchannels", "+@all", "-@all", "alldbs", "resetdbs", "db=*", "db=a", "db=a*,b", "db=[ab]?,c",
		"%R~k*", "%W~k*", "~k*", "~key", "%R~*", "~a?c", "%W~kk*", "~[jk]ey", "&c*", "&c", "&d?*", "+@read", "-@read", "+@slow", "-@slow", "+@string",
		"-@admin", "+@admin", "+@pubsub", "+@stream", "+get", "-get", "+set", "-set", "+config", "-config", "+config|get", "-config|set", "+select", "-select",
		"+select|0", "+select|a", "+publish", "+psubscribe", "-publish"}
	someKeys     = []string{"k", "key", "kk", "abc", "jey", "other", ""}
	someNames    = []string{"a", "ab", "b", "bc", "c", "d", "0"}
	someChannels = []string{"c", "cc", "c*", "d1", "d?*", "e"}
)

func pick(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }

// randomCall returns a call of a random command.
func randomCall(r *rand.Rand) *Call {
	n := r.IntN(len(small.commands))
	c := &Call{Number: n, Name: small.commands[n].Name, Args: []string{small.commands[n].Name}}
	switch c.Name {
	case "get", "set":
		for range 1 + r.IntN(2) {
			c.Keys = append(c.Keys, Key{pick(r, someKeys), Permission(r.IntN(4))})
		}
		c.Containers = []string{pick(r, someNames)}
	case "select":
		c.Args = append(c.Args, pick(r, []string{"0", "a", "b"}))
		c.Containers = []string{pick(r, someNames), pick(r, someNames)}[:1+r.IntN(2)]
	case "publish", "psubscribe":
		c.Channels, c.Patterns = []string{pick(r, someChannels)}, c.Name == "psubscribe"
	}
	return c
}

// playRandomRules compares a user of random rules with the oracle, and with the user that its line makes.
func playRandomRules(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	u, sets := change(t), []*naive{newNaive()}
	var applied []string
	for range 1 + r.IntN(12) {
		rule := pick(r, setRules)
		if r.IntN(5) == 0 {
			list := make([]string, 1+r.IntN(5))
			for i := range list {
				list[i] = pick(r, setRules)
			}
			rule = "(" + strings.Join(list, " ") + ")"
		}
		next, err := u.changed(small, []string{rule}, false)
		if err != nil { // a pattern after *
			continue
		}
		u, applied = next, append(applied, rule)
		if rule[0] == '(' {
			n := newNaive()
			for _, inner := range strings.Fields(rule[1 : len(rule)-1]) {
				n.apply(inner)
			}
			sets = append(sets, n)
		} else {
			sets[0].apply(rule)
		}
	}
	again, err := newUser("u", false).changed(small, strings.Fields(u.Line())[2:], false)
	if err != nil || again.Line() != u.Line() {
		t.Fatalf("seed %d: %q: the line %q makes %v, %v", seed, applied, u.Line(), again, err)
	}
	open := true
	for range 50 {
		c := randomCall(r)
		want := reasons
		for i, n := range sets {
			reason := n.judge(c)
			if reason == Allowed {
				want = Allowed
				break
			}
			if i == 0 || reason > want {
				want = reason
			}
		}
		open = open && want == Allowed
		if got := u.Judge(c).Reason; got != want {
			t.Fatalf("seed %d: %q, %+v: got %s, want %s", seed, applied, c, got, want)
		}
		if got := again.Judge(c).Reason; got != want {
			t.Fatalf("seed %d: the line %q of %q, %+v: got %s, want %s", seed, u.Line(), applied, c, got, want)
		}
		if u.Open && want != Allowed {
			t.Fatalf("seed %d: %q is open, but %+v is refused", seed, applied, c)
		}
	}
}

func TestRandomRules(t *testing.T) {
	t.Parallel()
	for seed := range uint64(600) {
		playRandomRules(t, seed)
	}
}

func FuzzRules(f *testing.F) {
	f.Add("on >a ~a* %R~b* &c* db=a*,b -@all +@read +select|0 (~x +get)")
	f.Add("+config|get|x #0 %~ db=[^a]")
	f.Add("~a\u00a0b (~a\u2003b) &\u0085")
	f.Fuzz(func(t *testing.T, rules string) {
		u, err := newUser("u", false).changed(small, strings.Split(rules, " "), false)
		if err != nil {
			return
		}
		again, err := newUser("u", false).changed(small, fields(u.Line())[2:], false)
		if err != nil || again.Line() != u.Line() {
			t.Fatalf("%q: the line %q makes %v, %v", rules, u.Line(), again, err)
		}
		u.Judge(&Call{Name: "get", Args: []string{"get"}, Keys: []Key{{"k", Read}}, Containers: []string{"a"}})
	})
}

func TestUsers(t *testing.T) {
	t.Parallel()
	us := NewUsers(small)
	if us.Table().NeedsLogin() || us.Table().Restricted {
		t.Error("the default user is restricted")
	}
	if _, _, err := us.Set("alice", []string{"on", ">one", ">two", "~a*", "+get"}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, password string
		right          bool
	}{{"alice", "one", true}, {"alice", "two", true}, {"alice", "three", false}, {"bob", "one", false}, {DefaultName, "any", true}} {
		if got := us.Authenticate(tt.name, tt.password) != nil; got != tt.right {
			t.Errorf("%s %s: got %t", tt.name, tt.password, got)
		}
	}
	var h Holder
	if u, identified := h.Refresh(us, false); !identified || u.Name != DefaultName || !h.Open() {
		t.Error("a session does not begin as the default")
	}
	h.Become("alice")
	if _, identified := h.Refresh(us, true); !identified || h.Open() {
		t.Error("alice may do everything")
	}
	if _, _, err := us.Set("alice", []string{"off", "allkeys", "allcommands", "allchannels"}); err != nil {
		t.Fatal(err)
	}
	if h.Refresh(us, true); !h.Open() {
		t.Error("a change does not reach the session")
	}
	if us.Authenticate("alice", "one") != nil {
		t.Error("alice is off")
	}
	if err := us.SetDefaultPassword("secret"); err != nil || !us.Table().NeedsLogin() || us.Authenticate(DefaultName, "secret") == nil {
		t.Error("requirepass is not the password of the default", err)
	}
	if h.Open() {
		t.Error("the session does not see a new table")
	}
	if _, err := us.Delete([]string{"alice", DefaultName}); err == nil || us.Table().User("alice") == nil {
		t.Error("default can be removed")
	}
	if gone, err := us.Delete([]string{"alice", "bob"}); err != nil || !slices.Equal(gone, []string{"alice"}) {
		t.Error(gone, err)
	}
	if u, identified := h.Refresh(us, true); u != nil || identified {
		t.Error("a session keeps a user that is gone")
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	us := NewUsers(small)
	if _, _, err := us.Set("old", nil); err != nil {
		t.Fatal(err)
	}
	const end = "WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
	for _, tt := range []struct{ text, want string }{
		{"foo bar", "f:1 should start with user keyword followed by the username. " + end},
		{"\n\nuser a +nosuch", "f:3: Unknown command or category name in ACL. " + end},
		{"user a\nuser a", "WARNING: Duplicate user 'a' found on line 2. " + end},
		{"user a (~x", "f:1: Unmatched parenthesis in selector definition." + end},
	} {
		if _, err := us.Load("f", tt.text); err == nil || err.Error() != tt.want {
			t.Errorf("%q: got %v, want %s", tt.text, err, tt.want)
		}
	}
	if us.Table().User("old") == nil {
		t.Error("a file with faults changed the users")
	}
	if _, err := us.Load("f", "user a on >x ~k* +get\n\n"); err != nil {
		t.Fatal(err)
	}
	want := []string{"user a on #2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881 ~k* resetchannels -@all +get", "user default on nopass ~* &* +@all"}
	if got := us.Table().Lines(); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	// A name may be empty, and white space that is not ASCII is part of a name or pattern.
	want = []string{"user  on nopass ~a\u00a0b resetchannels -@all (~c\u2003d resetchannels -@all)", want[1], "user \u00a0 off resetchannels -@all"}
	if _, err := us.Load("f", strings.Join(want, "\n")); err != nil || !slices.Equal(us.Table().Lines(), want) {
		t.Errorf("got %q, %v", us.Table().Lines(), err)
	}
	if us.Authenticate("", "any") == nil {
		t.Error("the user with the empty name cannot log in")
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	var l Log
	add := func(object string, at int64) {
		l.Add(Entry{Reason: DeniedKey, Object: object, User: "u", Updated: at, Client: "c"})
	}
	add("a", 0)
	add("b", 1)
	add("a", 60_000) // the same
	add("b", 60_002) // too old
	objects := func() (list []string) {
		for _, e := range l.Entries(10) {
			list = append(list, fmt.Sprintf("%d %s%d %d %d", e.ID, e.Object, e.Count, e.Created, e.Updated))
		}
		return list
	}
	if got, want := objects(), []string{"2 b1 60002 60002", "0 a2 0 60000", "1 b1 1 1"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q", got)
	}
	l.SetLength(1)
	if got := objects(); len(got) != 3 {
		t.Errorf("got %q", got)
	}
	add("c", 60_003)
	if got := objects(); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	if l.Denied(DeniedKey) != 5 {
		t.Error(l.Denied(DeniedKey))
	}
	l.Reset()
	if l.SetLength(0); len(objects()) != 0 {
		t.Error("entries are left")
	}
	if add("a", 0); len(objects()) != 0 {
		t.Error("a log of length 0 keeps an entry")
	}
}
