package commands

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/redisfmt"
	"mayfly/test/drill"
)

// conditionKey is a key as the model of conditions has it.
type conditionKey struct {
	value string
	end   int64 // ms since 1970; 0: it does not expire
	doc   bool
}

// conditionModel is what the commands with conditions do, said as simply as possible. A dead key is not in
// it.
type conditionModel struct {
	keys    map[string]conditionKey
	now     int64
	watched string
	written bool // the watched key, by the last command
}

const (
	wrongType     = "(error) WRONGTYPE Operation against a key holding the wrong kind of value"
	conditionType = "(error) ERR Key should be of string type if conditions are specified"
)

// holds judges a condition of a value.
func (m *conditionModel) holds(word, operand, key string) bool {
	k, found := m.keys[key]
	switch word {
	case "":
		return true
	case "NX":
		return !found
	case "XX":
		return found
	case "IFEQ":
		return found && k.value == operand
	case "IFNE":
		return !found || k.value != operand
	case "IFDEQ":
		return found && items.Digest(k.value) == strings.ToLower(operand)
	case "IFDNE":
		return !found || items.Digest(k.value) != strings.ToLower(operand)
	}
	panic(word)
}

// end returns the end that an option gives a key.
func (m *conditionModel) end(option, key string) int64 {
	word, number, _ := strings.Cut(option, " ")
	n, _ := strconv.ParseInt(number, 10, 64)
	switch word {
	case "EX":
		return m.now + 1000*n
	case "PX":
		return m.now + n
	case "EXAT":
		return 1000 * n
	case "PXAT":
		return n
	case "KEEPTTL":
		return m.keys[key].end
	}
	return 0
}

// put writes a key, which is dead at once if its end has passed: then nothing changes where there was none.
func (m *conditionModel) put(key, value string, end int64) {
	_, had := m.keys[key]
	m.keys[key] = conditionKey{value: value, end: end}
	m.bury()
	_, has := m.keys[key]
	m.written = m.written || key == m.watched && (had || has)
}

// bury removes the dead.
func (m *conditionModel) bury() {
	for key, k := range m.keys {
		if k.end != 0 && k.end <= m.now {
			delete(m.keys, key)
		}
	}
}

func (m *conditionModel) remove(key string) string {
	if _, found := m.keys[key]; !found {
		return "(integer) 0"
	}
	delete(m.keys, key)
	m.written = m.written || key == m.watched
	return "(integer) 1"
}

func (m *conditionModel) set(key, value, word, operand string, get bool, expire string) string {
	old, found := m.keys[key]
	if old.doc && (get || strings.HasPrefix(word, "IF")) {
		return wrongType
	}
	holds, reply := m.holds(word, operand, key), "OK"
	switch {
	case get && !found, !get && !holds:
		reply = "(nil)"
	case get:
		reply = strconv.Quote(old.value)
	}
	if holds {
		m.put(key, value, m.end(expire, key))
	}
	return reply
}

func (m *conditionModel) msetex(pairs []string, word, expire string) string {
	for i := 0; i < len(pairs); i += 2 {
		if !m.holds(word, "", pairs[i]) {
			return "(integer) 0"
		}
	}
	for i := 0; i < len(pairs); i += 2 {
		m.put(pairs[i], pairs[i+1], m.end(expire, pairs[i]))
	}
	return "(integer) 1"
}

// increx adds to an integer. expire may be PERSIST, and end with ENX.
func (m *conditionModel) increx(key string, by, low, high int64, saturate bool, expire string) string {
	k, found := m.keys[key]
	if k.doc {
		return wrongType
	}
	n, err := strconv.ParseInt(k.value, 10, 64)
	if found && err != nil {
		return "(error) ERR value is not an integer or out of range"
	}
	sum := n + by
	if (sum < low || sum > high) && !saturate {
		return fmt.Sprintf("1) (integer) %d\n2) (integer) 0", n)
	}
	sum = min(max(sum, low), high)
	end, option := k.end, strings.TrimSuffix(expire, " ENX")
	if option == "PERSIST" || option != "" && (option == expire || k.end == 0) {
		end = m.end(option, key)
	}
	m.put(key, strconv.FormatInt(sum, 10), end)
	if _, found := m.keys[key]; !found && k.value == "" {
		m.written = false // a new key that is dead at once is not made
	}
	return fmt.Sprintf("1) (integer) %d\n2) (integer) %d", sum, sum-n)
}

const smallDocument = `{"v":1}`

func (m *conditionModel) setDocument(key string) string {
	if k, found := m.keys[key]; found && !k.doc {
		return "(error) WRONGTYPE Existing key has wrong Redis type"
	}
	m.keys[key] = conditionKey{value: smallDocument, doc: true}
	m.written = true
	return "OK"
}

func (m *conditionModel) delex(key, word, operand string) string {
	if m.keys[key].doc && word != "" {
		return conditionType
	}
	if _, found := m.keys[key]; !found || !m.holds(word, operand, key) {
		return "(integer) 0"
	}
	return m.remove(key)
}

func (m *conditionModel) delifeq(key, operand string) string {
	if m.keys[key].doc {
		return wrongType
	}
	return m.delex(key, "IFEQ", operand)
}

// TestConditionsByModel sends random commands with conditions. Replies, values and ends are those of the
// model, and a client that watches the key notices a command exactly if it has written.
func TestConditionsByModel(t *testing.T) {
	t.Parallel()
	w, random := newHarness(t), drill.Rand(t)
	m := &conditionModel{keys: map[string]conditionKey{}, now: testStart}
	keys := []string{"k", "l"}
	for n := range drill.Pick(500, 5000, 100_000) {
		if random.IntN(4) == 0 {
			step := random.Int64N(3000)
			w.clock.Advance(time.Duration(step) * time.Millisecond)
			m.now += step
			m.bury()
		}
		key := keys[random.IntN(len(keys))]
		m.watched, m.written = key, false
		w.do(2, "WATCH", key)
		args, want := randomConditional(m, random, key)
		if got := notation(w.do(1, args...)); got != want {
			t.Fatalf("command %d: %q: got %s, want %s", n, args, got, want)
		}
		w.do(2, "MULTI")
		if aborted := notation(w.do(2, "EXEC")) == "(nil)"; aborted != m.written {
			t.Fatalf("command %d: %q: %s: aborts a transaction that watches: %v", n, args, want, aborted)
		}
		for _, key := range keys {
			k, found := m.keys[key]
			value, end := "(nil)", "(integer) -2"
			if found {
				value, end = strconv.Quote(k.value), "(integer) -1"
			}
			if k.end != 0 {
				end = fmt.Sprintf("(integer) %d", k.end)
			}
			w.expect(value, "GET", key)
			w.expect(end, "PEXPIRETIME", key)
		}
		if t.Failed() {
			t.Fatalf("after command %d: %q", n, args)
		}
	}
}

// randomConditional makes up a command and returns the reply of the model.
func randomConditional(m *conditionModel, random *rand.Rand, key string) (args []string, want string) {
	one := func(words ...string) string { return words[random.IntN(len(words))] }
	value := func() string { return one("a", "b", "", "1", "2", strings.Repeat("long", 50)) }
	v, word, operand := value(), one("IFEQ", "IFNE", "IFDEQ", "IFDNE"), value()
	if k, found := m.keys[key]; found && random.IntN(2) == 0 {
		operand = k.value
	}
	plain := operand
	if strings.HasPrefix(word, "IFD") {
		operand = items.Digest(operand)
		operand = one(operand, strings.ToUpper(operand))
	}
	expire := one("", "EX 2", "PX 1500", "KEEPTTL", fmt.Sprintf("PXAT %d", m.now+random.Int64N(3000)-500), fmt.Sprintf("EXAT %d", m.now/1000+random.Int64N(3)))
	switch random.IntN(12) {
	case 0:
		return []string{"JSON.SET", key, "$", smallDocument}, m.setDocument(key)
	case 1:
		return []string{"DELEX", key}, m.delex(key, "", "")
	case 2:
		return []string{"DELEX", key, one(word, strings.ToLower(word)), operand}, m.delex(key, word, operand)
	case 3:
		return []string{"DELIFEQ", key, plain}, m.delifeq(key, plain)
	case 6, 7:
		by, low := random.Int64N(5)-2, random.Int64N(4)-2
		high, saturate := low+random.Int64N(4), random.IntN(2) == 0
		switch {
		case expire == "KEEPTTL":
			expire = "PERSIST"
		case expire != "" && random.IntN(2) == 0:
			expire += " ENX"
		}
		args = []string{"INCREX", key, "BYINT", fmt.Sprint(by), "LBOUND", fmt.Sprint(low), "UBOUND", fmt.Sprint(high)}
		if args = append(args, strings.Fields(expire)...); saturate {
			args = append(args, "SATURATE")
		}
		return args, m.increx(key, by, low, high, saturate, expire)
	case 4, 5:
		pairs, word := []string{key, v, one("k", "l"), value()}, one("", "NX", "XX")
		args = slices.Concat([]string{"MSETEX", "2"}, pairs, strings.Fields(expire), strings.Fields(word))
		return args, m.msetex(pairs, word, expire)
	}
	args = []string{"SET", key, v}
	var options [][]string
	switch word = one("", "NX", "XX", word, word, word); {
	case strings.HasPrefix(word, "IF"):
		options = append(options, []string{word, operand})
	case word != "":
		options = append(options, []string{word})
	}
	get := random.IntN(3) == 0
	if get {
		options = append(options, []string{"GET"})
	}
	if expire != "" {
		options = append(options, strings.Fields(expire))
	}
	random.Shuffle(len(options), func(i, j int) { options[i], options[j] = options[j], options[i] })
	for _, o := range options {
		args = append(args, o...)
	}
	return args, m.set(key, v, word, operand, get, expire)
}

// A sum that no long double holds is out of bounds, and SATURATE makes it the bound or the largest.
func TestIncrExOverflow(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	const huge = "1.1e4932"
	largest := redisfmt.FormatFloat(redisfmt.LargestFloat(false))
	for _, tt := range []struct{ sign, options, want string }{
		{"", "", ""}, {"", "UBOUND 5", ""}, {"", "UBOUND inf", ""}, {"", "UBOUND 5 SATURATE", "5"}, {"", "SATURATE", largest},
		{"", "UBOUND inf SATURATE", largest}, {"-", "LBOUND -5 SATURATE", "-5"}, {"-", "SATURATE", "-" + largest}, {"-", "LBOUND -5", ""},
	} {
		w.expect("OK", "SET", "f", tt.sign+huge)
		if reply := w.do(1, append([]string{"INCREX", "f", "BYFLOAT", tt.sign + huge}, strings.Fields(tt.options)...)...); len(reply.Elems) != 2 {
			t.Fatalf("%+v: %s", tt, notation(reply))
		}
		want := tt.want
		if want == "" {
			want = tt.sign + huge
		}
		w.expect(strconv.Quote(want), "GET", "f")
	}
}

// A long value is read without locks.
func TestLongDigest(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	long := strings.Repeat("x", engine.SlowBytes)
	w.expect("OK", "SET", "k", long)
	w.expect(strconv.Quote(items.Digest(long)), "DIGEST", "k")
	w.do(1, "MULTI")
	w.do(1, "DIGEST", "k")
	w.expect("1) "+strconv.Quote(items.Digest(long)), "EXEC")
}
