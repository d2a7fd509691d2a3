package expiry

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mayfly/test/drill"
)

// TestTruthTable checks the nine cells of the table of rules, just before, at and after the millisecond of
// death.
func TestTruthTable(t *testing.T) {
	t.Parallel()
	const (
		n, m  = 10, 3 // seconds
		ts    = 1_700_000_000_123
		never = 0
	)
	for _, tc := range []struct {
		container, document TTL
		dies                int64 // ms after the last write
	}{
		{Off, Absent, never},
		{Off, Forever, never},
		{Off, m, never},
		{Forever, Absent, never},
		{Forever, Forever, never},
		{Forever, m, m * 1000},
		{n, Absent, n * 1000},
		{n, Forever, never},
		{n, m, m * 1000},
		// The document's ttl rules even if it is the longer one.
		{m, n, n * 1000},
		// The edges of the legal range.
		{1, Absent, 1000},
		{Forever, 1, 1000},
		{MaxTTL, Absent, 2147483647000},
		{Forever, MaxTTL, 2147483647000},
	} {
		t.Run(fmt.Sprintf("container %v document %d", tc.container, tc.document), func(t *testing.T) {
			p := Policy{Default: tc.container}
			own := ExpireAt(ts, tc.document)
			check := func(now int64, want bool) {
				t.Helper()
				if got := p.Dead(ts, own, now); got != want {
					t.Errorf("%d ms after the write: dead is %v", now-ts, got)
				}
			}
			end, ends := p.End(ts, own)
			if tc.dies == never {
				if ends {
					t.Errorf("ends at %d", end)
				}
				for _, now := range []int64{ts, ts + 999, ts + 1000, ts + 10000, ts + int64(MaxTTL)*1000, math.MaxInt64} {
					check(now, false)
				}
				return
			}
			if !ends || end != ts+tc.dies {
				t.Errorf("ends at %d, %v; want %d", end, ends, ts+tc.dies)
			}
			check(ts, false)
			check(ts+tc.dies-1, false)
			check(ts+tc.dies, true)
			check(ts+tc.dies+1, true)
			check(math.MaxInt64, true)
		})
	}
}

func TestNothingWrapsAround(t *testing.T) {
	t.Parallel()
	const far = math.MaxInt64
	for _, ts := range []int64{far, far - 999, far - 1000, far - 1001} {
		own := ExpireAt(ts, 1)
		if own < ts {
			t.Errorf("own end of one written at %d is %d", ts, own)
		}
		own = ExpireAt(ts, MaxTTL)
		if own != far {
			t.Errorf("own end of one written at %d is %d", ts, own)
		}
		for _, def := range []TTL{Forever, 1, MaxTTL} {
			p := Policy{Default: def}
			if p.Dead(ts, Inherit, 1_700_000_000_000) || p.Dead(ts, own, 1_700_000_000_000) {
				t.Errorf("default %v: one written at %d is dead today", def, ts)
			}
			if end, ok := p.End(ts, Inherit); ok && end < ts {
				t.Errorf("default %v: one written at %d ends at %d", def, ts, end)
			}
			if q := p.Change(Off, Strict, 1_700_000_000_000); q.Dead(ts, Inherit, far) || q.Dead(ts, own, far) {
				t.Errorf("default %v: one written at %d was dead when TTL was switched off", def, ts)
			}
		}
	}
	// An own end at the limit is a moment like any other.
	p := Policy{Default: Forever}
	if p.Dead(1, far, far-1) || !p.Dead(1, far, far) {
		t.Error("an end at the limit of the type is not the moment of death")
	}
	// A default longer than the clock has run kills nothing.
	p = Policy{Default: MaxTTL}
	off := p.Change(Off, Strict, 1000)
	if p.Dead(1, Inherit, 1000) || off.Dead(1, Inherit, far) {
		t.Error("68 years were over after a second")
	}
}

func TestOffAndOnAgain(t *testing.T) {
	t.Parallel()
	const start = 1_000_000
	p := Policy{Default: 10}
	// Written at start: a inherits 10 s, b has 5 s, c has 30 s of its own, d lives for ever.
	b, c := ExpireAt(start, 5), ExpireAt(start, 30)
	state := func(now int64) string {
		s := ""
		for i, own := range []int64{Inherit, b, c, Never} {
			if !p.Dead(start, own, now) {
				s += string("abcd"[i])
			}
		}
		return s
	}
	expect := func(now int64, want string) {
		t.Helper()
		if got := state(now); got != want {
			t.Errorf("at +%d ms %q live, want %q", now-start, got, want)
		}
	}
	expect(start+7000, "acd")
	p = p.Change(Off, Strict, start+7000)
	expect(start+60_000, "acd") // b stays dead; nothing dies any more
	p = p.Change(Forever, Strict, start+61_000)
	expect(start+61_000, "ad") // the stored ttl of c wakes up, long past
	p = p.Change(Off, Strict, start+62_000)
	expect(start+62_000, "ad")
	p = p.Change(62, Strict, start+62_000) // over in this very millisecond
	expect(start+62_000, "d")
	p = p.Change(MaxTTL, Lenient, start+62_000)
	expect(start+62_000, "d")
	p = p.Change(Forever, Lenient, start+63_000)
	expect(math.MaxInt64, "d")
	if p.Mode != Lenient || p.Default != Forever {
		t.Errorf("policy is %+v", p)
	}
}

// TestDeadStaysDead compares Policy with a model that remembers for every millisecond which items were dead.
func TestDeadStaysDead(t *testing.T) {
	t.Parallel()
	const (
		items = 24
		end   = 8000 // ms
	)
	histories := drill.Pick[uint64](60, 300, 300)
	type item struct {
		ts, own int64
		died    bool
	}
	kills := func(def TTL, it item, now int64) bool { // the table, as it is written
		switch {
		case def == Off || it.own == Never:
			return false
		case it.own != Inherit:
			return it.own > 0 && it.own <= now || it.own < Never && (-it.own <= now || def > 0 && it.ts+int64(def)*1000 <= now)
		case def == Forever:
			return false
		}
		return it.ts+int64(def)*1000 <= now
	}
	died, revived := 0, 0
	for seed := range histories {
		rng := rand.New(rand.NewPCG(seed, 0))
		anyTTL := func() TTL { return [...]TTL{Off, Forever, 1, 2, 3, 5, MaxTTL}[rng.IntN(7)] }

		changes := map[int64][]TTL{} // several may fall into one millisecond
		for range rng.IntN(8) {
			at := 1 + rng.Int64N(end)
			if rng.IntN(3) == 0 {
				at -= at % 1000 // so that it meets deaths exactly
			}
			changes[max(at, 1)] = append(changes[max(at, 1)], anyTTL())
		}
		list := make([]item, items)
		for i := range list {
			ts := 1 + rng.Int64N(end)
			if rng.IntN(2) == 0 {
				ts -= ts % 1000
			}
			ts = max(ts, 1)
			switch rng.IntN(5) {
			case 4:
				list[i] = item{ts: ts, own: CapAt(ts + 1 + rng.Int64N(4000))}
			case 0:
				list[i] = item{ts: ts, own: Inherit}
			case 1:
				list[i] = item{ts: ts, own: Never}
			case 2:
				list[i] = item{ts: ts, own: ExpireAt(ts, TTL(1+rng.IntN(4)))}
			case 3: // a plain key's deadline
				list[i] = item{ts: ts, own: ts + 1 + rng.Int64N(4000)}
			}
		}

		p := Policy{Default: anyTTL()}
		for now := int64(1); now <= end; now++ {
			for _, def := range append(changes[now], -99) { // -99: no further change at this moment
				for i := range list {
					it := &list[i]
					if it.ts > now {
						continue
					}
					it.died = it.died || kills(p.Default, *it, now)
					if got := p.Dead(it.ts, it.own, now); got != it.died {
						t.Fatalf("seed %d at %d: dead is %v of %+v under %+v", seed, now, got, *it, p)
					}
					if it.died {
						died++
						if !kills(p.Default, *it, now) {
							revived++ // without the marks it would live
						}
						continue
					}
					at, ok := p.End(it.ts, it.own)
					if byDefault, byOwnTTL := p.Expires(); ok != (it.own == Inherit && byDefault || it.own != Inherit && it.own != Never && byOwnTTL) {
						t.Fatalf("seed %d at %d: Expires gives %t, %t; %+v ends: %t", seed, now, byDefault, byOwnTTL, *it, ok)
					}
					if ok && (at <= now || !p.Dead(it.ts, it.own, at) || p.Dead(it.ts, it.own, at-1)) {
						t.Fatalf("seed %d at %d: end %d of %+v is wrong under %+v", seed, now, at, *it, p)
					}
				}
				if def != -99 {
					p = p.Change(def, Strict, now)
				}
			}
		}
	}
	if died == 0 || revived == 0 {
		t.Errorf("nothing was tested: %d dead, %d that the marks keep dead", died, revived)
	}
}

// TestPolicyIsOfConstantSize: a policy after a million changes is as large as a new one. The texts are given,
// and changes do not add to them.
func TestPolicyIsOfConstantSize(t *testing.T) {
	t.Parallel()
	for i := range reflect.TypeFor[Policy]().NumField() {
		f := reflect.TypeFor[Policy]().Field(i)
		switch f.Type.Kind() {
		case reflect.Int64, reflect.Uint8:
		case reflect.String:
			if f.Name != "Deadline" && f.Name != "Hold" {
				t.Errorf("%s could grow: it is a text", f.Name)
			}
		default:
			t.Errorf("%s could grow: it is a %v", f.Name, f.Type)
		}
	}
}

// numbers are spellings of ttl in JSON with their value; 0 if they do not count (rule 4).
var numbers = []struct {
	raw  string
	want TTL
}{
	{"1", 1}, {"20", 20}, {"20.0", 20}, {"2e1", 20}, {"2E1", 20}, {"2e+1", 20}, {"2.0e1", 20},
	{"200e-1", 20}, {"0.2e2", 20}, {"0.00000000000000000000002e24", 20}, {"2e0000000000000000000000001", 20},
	{"20000000000000000000000000000000e-30", 20}, {"20.00000000000000000000000000000", 20}, {"1e0", 1}, {"1e-0", 1},
	{"-1", -1}, {"-1.0", -1}, {"-10e-1", -1}, {"-0.1e1", -1},
	{"2147483647", MaxTTL}, {"2147483647.0", MaxTTL}, {"2.147483647e9", MaxTTL}, {"21474836470e-1", MaxTTL}, {"2e9", 2000000000},

	{"0", 0}, {"-0", 0}, {"0.0", 0}, {"-0.0", 0}, {"0e5", 0}, {"0e-5", 0}, {"0e99999999999999999999", 0},
	{"-2", 0}, {"-20", 0}, {"-1.5", 0}, {"-1e1", 0}, {"-2147483648", 0},
	{"20.5", 0}, {"0.5", 0}, {"1e-1", 0}, {"2147483647.00000001", 0}, {"1.00000000000000000000000000001", 0}, {"5e-324", 0},
	{"2147483648", 0}, {"2147483648.0", 0}, {"3e9", 0}, {"1e10", 0}, {"99999999999", 0}, {"9223372036854775808", 0}, {"18446744073709551617", 0},
	{"1e999999999", 0}, {"1e-999999999", 0}, {"1e9999999999999999999999", 0}, {"1e-9999999999999999999999", 0}, {"0.1e9223372036854775807", 0},
	{"1e-9223372036854775808", 0}, {"4294967297", 0},
}

// noNumbers are not numbers in JSON.
var noNumbers = []string{
	"", "-", "+", "+5", "-01", "01", "00", "020", "-00", "1.", ".5", "-.5", "1e", "1e+", "1e-", "e1", "1.e1", "1e1.0", "1e1e1", "1.0.0",
	"--1", "+-1", " 1", "1 ", "1_000", "0x10", "1,5", "٣", "NaN", "Infinity", "-Infinity", "nul", "NULL", "Null", "nullnull",
	"true", "false", `"20"`, `""`, "[]", "[1]", "{}", `{"ttl":5}`, "1\n", "1\x00", "\xff", "2e1\r\n",
}

func TestParseMember(t *testing.T) {
	t.Parallel()
	for _, tc := range numbers {
		got, err := ParseMember(tc.raw)
		checkParsed(t, "ParseMember", tc.raw, got, err, tc.want)
	}
	for _, raw := range noNumbers {
		got, err := ParseMember(raw)
		checkParsed(t, "ParseMember", raw, got, err, 0)
	}
	if got, err := ParseMember("null"); got != Absent || err != nil {
		t.Errorf("null: %d, %v", got, err)
	}
}

// TestParseDefaultAndOption: commands accept one spelling only: digits, or -1.
func TestParseDefaultAndOption(t *testing.T) {
	t.Parallel()
	canonical := map[string]TTL{"-1": Forever, "1": 1, "20": 20, "2000000000": 2000000000, "2147483647": MaxTTL}
	for name, parse := range map[string]func(string) (TTL, error){"ParseDefault": ParseDefault, "ParseOption": ParseOption} {
		for s, want := range canonical {
			got, err := parse(s)
			checkParsed(t, name, s, got, err, want)
		}
		for _, tc := range numbers {
			if canonical[tc.raw] == 0 {
				got, err := parse(tc.raw)
				checkParsed(t, name, tc.raw, got, err, 0)
			}
		}
		for _, s := range slices.DeleteFunc(slices.Clone(noNumbers), func(s string) bool { return strings.EqualFold(s, "null") }) {
			got, err := parse(s)
			checkParsed(t, name, s, got, err, 0)
		}
	}
	for _, s := range []string{"off", "OFF", "Off", "null", "NULL", "Null"} {
		if got, err := ParseDefault(s); got != Off || err != nil {
			t.Errorf("ParseDefault(%q) = %d, %v", s, got, err)
		}
	}
	for _, s := range []string{"off", "OFF", "Off"} {
		if _, err := ParseOption(s); err == nil {
			t.Errorf("ParseOption accepts %q", s)
		}
	}
	for _, s := range []string{"null", "NULL", "Null"} {
		if got, err := ParseOption(s); got != Absent || err != nil {
			t.Errorf("ParseOption(%q) = %d, %v", s, got, err)
		}
	}
}

// checkParsed expects want. If that is 0, it expects a RangeError on one readable line with the value and the
// legal ones.
func checkParsed(t *testing.T, parser, s string, got TTL, err error, want TTL) {
	t.Helper()
	if want != 0 {
		if got != want || err != nil {
			t.Errorf("%s(%q) = %d, %v; want %d", parser, s, got, err, want)
		}
		return
	}
	var wrong *RangeError
	if got != 0 || !errors.As(err, &wrong) {
		t.Errorf("%s(%q) = %d, %v; want a RangeError", parser, s, got, err)
		return
	}
	msg := err.Error()
	if strings.ContainsAny(msg, "\r\n\x00") || len(msg) > 400 {
		t.Errorf("%s(%q): the error is not one readable line: %q", parser, s, msg)
	}
	if !strings.Contains(msg, Quote(s)) || !strings.Contains(msg, "2147483647") {
		t.Errorf("%s(%q): the error names neither value nor range: %s", parser, s, msg)
	}
}

// TestLongNumbers: hostile numbers cost time in proportion to their length.
func TestLongNumbers(t *testing.T) {
	zeros := strings.Repeat("0", 1<<20)
	for raw, want := range map[string]TTL{
		"1" + zeros:                              0,
		"20." + zeros:                            20,
		"20." + zeros + "1":                      0,
		"0." + zeros + "2e1048578":               20,
		"0." + zeros + "2e1048577":               2,
		"0." + zeros + "2e1048576":               0,
		"2" + zeros + "e-1048576":                2,
		"2" + zeros + "e-1048575":                20,
		"2" + zeros + "e-1048577":                0,
		"7e" + zeros + "1":                       70,
		"7e1" + zeros:                            0,
		"7e-1" + zeros:                           0,
		strings.Repeat("9", 1<<20):               0,
		strings.Repeat("9", 1<<20) + "e-1048575": 0,
	} {
		got, err := ParseMember(raw)
		if (err == nil) != (want != 0) || got != want {
			t.Errorf("ParseMember(%s) = %d, want %d", Quote(raw), got, want)
		}
	}
	raw := "1e" + strings.Repeat("9", 1<<20)
	if n := testing.AllocsPerRun(10, func() { _, _ = parseWholeNumber(raw, maxDigits) }); n != 0 {
		t.Errorf("a huge exponent costs %v allocations", n)
	}
}

func TestStrings(t *testing.T) {
	t.Parallel()
	for _, tc := range [][2]string{
		{Off.String(), "off"}, {Forever.String(), "-1"}, {TTL(90).String(), "90"}, {MaxTTL.String(), "2147483647"},
		{Strict.String(), "strict"}, {Lenient.String(), "lenient"},
		{Quote("abc"), "abc"}, {Quote(""), `""`}, {Quote("a\r\nb"), `"a\r\nb"`}, {Quote("a\xffb"), `"a\xffb"`},
		{Quote(strings.Repeat("x", 65)), strings.Repeat("x", 64) + "..."}, {Quote(strings.Repeat("x", 64)), strings.Repeat("x", 64)},
		{RepeatedMember().Error(), "invalid ttl (the member is repeated): legal are -1 and whole numbers of seconds from 1 to 2147483647"},
	} {
		if tc[0] != tc[1] {
			t.Errorf("%s, want %s", tc[0], tc[1])
		}
	}
}

func TestSource(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		def     TTL
		own     int64
		ignored bool
		want    string
	}{
		{Off, CapAt(5000), false, "off"}, {Forever, CapAt(5000), false, "document"}, {Forever, CapAt(5000), true, "document"},
		{4, CapAt(5000), false, "document"}, {3, CapAt(5000), false, "container"}, {3, CapAt(5000), true, "ignored"},
		{Off, Inherit, false, "off"}, {Off, 5000, false, "off"}, {Off, Inherit, true, "off"},
		{Forever, Inherit, false, "container"}, {10, Inherit, false, "container"},
		{Forever, Never, false, "document"}, {10, Never, false, "document"}, {10, 5000, false, "document"},
		{10, Inherit, true, "ignored"},
	} {
		p := Policy{Default: tc.def}
		if got := p.Source(1000, tc.own, tc.ignored); got != tc.want {
			t.Errorf("default %v, own %d, ignored %v: %s, want %s", tc.def, tc.own, tc.ignored, got, tc.want)
		}
	}
}

// FuzzParseMember compares with exact arithmetic on numbers small enough for it.
func FuzzParseMember(f *testing.F) {
	for _, tc := range numbers {
		f.Add(tc.raw)
	}
	for _, raw := range noNumbers {
		f.Add(raw)
	}
	f.Add("null")
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := ParseMember(raw)
		if raw == "null" {
			if got != Absent || err != nil {
				t.Fatalf("ParseMember(null) = %d, %v", got, err)
			}
			return
		}
		if err != nil {
			checkParsed(t, "ParseMember", raw, got, err, 0)
		} else if got != Forever && (got < 1 || got > MaxTTL) {
			t.Fatalf("ParseMember(%q) = %d, which is not legal", raw, got)
		}
		exact, ok := exactly(raw)
		if !ok {
			return
		}
		legal := exact.IsInt() && exact.Num().IsInt64() &&
			(exact.Num().Int64() == -1 || exact.Num().Int64() >= 1 && exact.Num().Int64() <= int64(MaxTTL))
		if legal != (err == nil) || legal && exact.Num().Int64() != int64(got) {
			t.Fatalf("ParseMember(%q) = %d, %v; it is %v", raw, got, err, exact)
		}
	})
}

// exactly returns the value of a JSON number with a small exponent.
func exactly(raw string) (*big.Rat, bool) {
	if i := strings.IndexAny(raw, "eE"); i >= 0 && len(raw)-i > 5 || len(raw) > 100 || strings.ContainsAny(raw, "/_xXoObBpP+ ") {
		return nil, false
	}
	if digits := strings.TrimPrefix(raw, "-"); len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' ||
		strings.HasPrefix(digits, ".") || strings.Contains(digits, ".e") || strings.Contains(digits, ".E") || strings.HasSuffix(digits, ".") {
		return nil, false
	}
	return new(big.Rat).SetString(raw)
}

func FuzzParseDefault(f *testing.F) { fuzzSpelling(f, ParseDefault, "off", "null") }
func FuzzParseOption(f *testing.F)  { fuzzSpelling(f, ParseOption, "null") }

// fuzzSpelling checks that an accepted argument is a word or the printed form of its value.
func fuzzSpelling(f *testing.F, parse func(string) (TTL, error), words ...string) {
	for _, tc := range numbers {
		f.Add(tc.raw)
	}
	for _, s := range noNumbers {
		f.Add(s)
	}
	for _, word := range words {
		f.Add(word)
		f.Add(strings.ToUpper(word))
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parse(s)
		switch {
		case err != nil:
			checkParsed(t, "parse", s, got, err, 0)
		case got == 0:
			if !slices.ContainsFunc(words, func(word string) bool { return strings.EqualFold(s, word) }) {
				t.Fatalf("%q was read as one of %s", s, words)
			}
		case got.String() != s || got != Forever && (got < 1 || got > MaxTTL):
			t.Fatalf("%q was read as %d", s, got)
		}
	})
}

func BenchmarkDead(b *testing.B) {
	p := Policy{Default: 3600, InheritDeadTo: 1_600_000_000_000, OwnDeadTo: 1_600_000_000_000}
	const now = 1_700_000_000_000
	owns := [4]int64{Inherit, Never, now + 5000, now - 5000}
	dead := 0
	for i := range b.N {
		if p.Dead(now-int64(i&8191)*1000, owns[i&3], now) {
			dead++
		}
	}
	if b.N > 1<<14 && (dead == 0 || dead == b.N) {
		b.Fatalf("%d dead of %d", dead, b.N)
	}
}

func BenchmarkParseMember(b *testing.B) {
	for _, raw := range []string{"3600", "-1", "null", "20.0", "2e1", "20.5", "1e999999999"} {
		b.Run(raw, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				_, _ = ParseMember(raw)
			}
		})
	}
}

// TestAtLatest: an item dies as before or at the moment, whichever is first, under every default.
func TestAtLatest(t *testing.T) {
	t.Parallel()
	const ts, at = 1000, 5000
	for _, expireAt := range []int64{Inherit, Never, 4000, 6000, CapAt(4000), CapAt(6000)} {
		for _, def := range []TTL{Off, Forever, 3, 4, 60} {
			p := Policy{Default: def}
			want, dies := p.End(ts, expireAt)
			if def != Off && (!dies || want > at) {
				want, dies = at, true
			}
			if got, ok := p.End(ts, AtLatest(expireAt, at)); got != want || ok != dies {
				t.Errorf("%d under %d: %d, %t, want %d, %t", expireAt, def, got, ok, want, dies)
			}
		}
	}
}
