package expiry

import (
	"math"
	"math/big"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestParseDeadline(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		raw  string
		want int64 // ms; -2: refused
	}{
		{"null", 0}, {"1", 1000}, {"1767225600", 1767225600000}, {"1767225600.0", 1767225600000}, {"1.7672256e9", 1767225600000},
		{"253402300799", 253402300799000}, {"2534023007990e-1", 253402300799000},
		{"0", -2}, {"-1", -2}, {"-1767225600", -2}, {"1767225600.5", -2}, {"253402300800", -2}, {"1767225600000", -2}, {"1e99", -2}, {"1e999999999999", -2},
		{"true", -2}, {"[]", -2}, {"{}", -2}, {`""`, -2}, {`"1767225600"`, -2}, {`"tomorrow"`, -2},

		{`"2026-11-22T08:00:00Z"`, 1795334400000}, {`"2026-11-22t08:00:00z"`, 1795334400000},
		{`"2026-11-22T09:30:00+01:30"`, 1795334400000}, {`"2026-11-21T23:00:00-09:00"`, 1795334400000},
		{`"2026-11-22T08:00:00.5Z"`, 1795334400500}, {`"2026-11-22T08:00:00.0019999Z"`, 1795334400001},
		{`"2026-11-22T08:00:00.123456789012345678901234567890+00:00"`, 1795334400123},
		{`"2026-11-22T08:00:00-00:00"`, 1795334400000},
		{`"1970-01-01T00:00:00Z"`, -1}, {`"1969-12-31T23:59:59.999Z"`, -1}, {`"1969-12-31T00:00:00Z"`, -86400000},
		{`"0000-01-01T00:00:00Z"`, -62167219200000}, {`"9999-12-31T23:59:59.999Z"`, 253402300799999},
		{`"2000-02-29T00:00:00Z"`, 951782400000}, {`"2024-02-29T00:00:00Z"`, 1709164800000},

		{`"2026-11-22T08:00:00"`, -2}, {`"2026-11-22"`, -2}, {`"2026-11-22 08:00:00Z"`, -2}, {`"2026-11-22T08:00Z"`, -2},
		{`"2026-11-22T08:00:00.Z"`, -2}, {`"2026-11-22T08:00:00,5Z"`, -2}, {`"2026-11-22T8:00:00Z"`, -2}, {`"2026-11-22T08:00:00+0100"`, -2},
		{`"2026-11-22T08:00:00+1:00"`, -2}, {`"2026-11-22T08:00:00+24:00"`, -2}, {`"2026-11-22T08:00:00+01:60"`, -2}, {`"2026-11-22T08:00:00Z "`, -2},
		{`"2026-13-22T08:00:00Z"`, -2}, {`"2026-00-22T08:00:00Z"`, -2}, {`"2026-11-31T08:00:00Z"`, -2}, {`"2026-11-00T08:00:00Z"`, -2},
		{`"2026-02-29T00:00:00Z"`, -2}, {`"1900-02-29T00:00:00Z"`, -2}, {`"2026-11-22T24:00:00Z"`, -2}, {`"2026-11-22T08:60:00Z"`, -2},
		{`"2016-12-31T23:59:60Z"`, -2}, {`"+2026-11-22T08:00:00Z"`, -2}, {`"12026-11-22T08:00:00Z"`, -2},
	} {
		at, err := ParseDeadline("expiresAt", tt.raw, strings.Trim(tt.raw, `"`))
		if refused := tt.want == -2; (err != nil) != refused || !refused && at != tt.want {
			t.Errorf("%s: %d, %v; want %d", tt.raw, at, err, tt.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "invalid expiresAt "+tt.raw) && len(tt.raw) < 60 && tt.raw != `""` {
			t.Errorf("%s: the error %q does not name the value", tt.raw, err)
		}
	}
}

// moments matches the date-times of RFC 3339, also those of days that no month has.
var moments = regexp.MustCompile(`^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// FuzzDeadline compares the times that are read with their grammar, and numbers with exact arithmetic.
func FuzzDeadline(f *testing.F) {
	for _, seed := range []string{
		"2026-11-22T08:00:00Z", "2026-11-22t08:00:00.123456z", "2026-11-22T08:00:00+23:59", "0000-01-01T00:00:00-23:59", "9999-12-31T23:59:59.999999999Z",
		"2024-02-29T23:59:59.9+05:30", "1900-02-28T00:00:00Z", "2026-11-22T08:00:00,5Z", "2026-11-22T8:00:00Z", "2016-12-31T23:59:60Z", "",
		"1767225600", "1.7672256e9", "253402300799.0", "253402300800", "0", "-1", "1e-1", "17672256000000000e-7", "0.1e1",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		legal := moments.MatchString(s)
		if legal {
			_, err := time.Parse(time.DateOnly, s[:len(time.DateOnly)])
			legal = err == nil
		}
		if ms, ok := parseMoment(s); ok != legal {
			t.Fatalf("%q: %d, %v", s, ms, ok)
		}
		if len(s) == 0 || s[0] == '"' || s == "null" || len(s) > 50 {
			return
		}
		at, err := ParseDeadline("d", s, "")
		if i := strings.IndexAny(s, "eEpP"); i >= 0 && len(s)-i > 4 {
			return // exact arithmetic would take long
		}
		exact, isNumber := new(big.Rat).SetString(s)
		if strings.ContainsAny(s, "_/xXpPoObB+") && !strings.ContainsAny(s, "eE") || !isNumber {
			return
		}
		legal = exact.IsInt() && exact.Sign() > 0 && exact.Cmp(big.NewRat(maxDeadline, 1)) <= 0
		switch {
		case err == nil && (!legal || new(big.Rat).SetInt64(at/1000).Cmp(exact) != 0):
			t.Fatalf("%q: %d", s, at)
		case err != nil && legal && s == exact.Num().String():
			t.Fatalf("%q: %v", s, err)
		}
	})
}

func TestOwnEnd(t *testing.T) {
	t.Parallel()
	const ts = int64(1_700_000_000_000)
	for _, tt := range []struct {
		ttl            TTL
		deadline, want int64
		rules          bool
	}{
		{Absent, 0, Inherit, false}, {Forever, 0, Never, false}, {10, 0, ts + 10_000, false},
		{Absent, ts + 5, CapAt(ts + 5), true}, {Forever, ts + 5, ts + 5, true},
		{10, ts + 9_999, ts + 9_999, true}, {10, ts + 10_000, ts + 10_000, true}, {10, ts + 10_001, ts + 10_000, false},
		{Absent, ts, CapAt(ts + 1), true}, {Absent, math.MinInt64, CapAt(ts + 1), true}, {10, -1, ts + 1, true}, {Forever, math.MinInt64, ts + 1, true},
		{MaxTTL, math.MaxInt64, ts + int64(MaxTTL)*1000, false},
	} {
		if got := OwnEnd(ts, tt.ttl, tt.deadline); got != tt.want {
			t.Errorf("ttl %d and deadline %d: %d, want %d", tt.ttl, tt.deadline, got, tt.want)
		}
		if got := DeadlineRules(ts, tt.ttl, tt.deadline); got != tt.rules {
			t.Errorf("ttl %d and deadline %d: the deadline rules %v", tt.ttl, tt.deadline, got)
		}
	}
}
