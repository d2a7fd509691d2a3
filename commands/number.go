package commands

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// parseInteger reads a 64-bit integer as Redis' string2ll does: an optional minus and digits, no
// leading zeros, plus or spaces, and no "-0", so that a number has one spelling only.
func parseInteger(s string) (int64, bool) {
	digits, negative := strings.CutPrefix(s, "-")
	switch {
	case digits == "" || len(digits) > len("9223372036854775808"):
		return 0, false
	case digits[0] == '0':
		return 0, digits == "0" && !negative
	}
	var n uint64 // up to 19 digits: no overflow
	for i := range len(digits) {
		d := digits[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = n*10 + uint64(d)
	}
	switch {
	case negative && n <= 1<<63:
		return -int64(n), true
	case !negative && n <= math.MaxInt64:
		return int64(n), true
	}
	return 0, false
}

// addInteger is a+b; false if that cannot be represented.
func addInteger(a, b int64) (int64, bool) {
	sum := a + b
	return sum, (sum > a) == (b > 0)
}

// parseCursor reads a cursor as C's strtoul does, on which Redis relies: a sign is allowed, and no
// digits at all mean 0.
func parseCursor(s string) (uint64, bool) {
	s = cString(s)
	digits, negative := strings.CutPrefix(s, "-")
	if !negative {
		digits = strings.TrimPrefix(s, "+")
	}
	if s == "" {
		return 0, true
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	if negative {
		n = -n
	}
	return n, err == nil
}

// INCRBYFLOAT computes in C's long double on x86: 64 bits of mantissa, 15 of exponent.
const (
	longDoubleBits   = 64
	longDoubleMaxExp = 16384  // greatest exponent, the mantissa being in [1/2, 1)
	longDoubleMinExp = -16444 // least one of a number that is not rounded to zero
	longDoubleText   = 5*1024 - 1
)

// parseFloat reads a number as Redis' string2ld does: C's strtold on the whole text, no spaces
// around, no NaN, no overflow or underflow; infinities and hexadecimal are allowed.
func parseFloat(s string) (*big.Float, bool) {
	if len(s) > longDoubleText {
		return nil, false
	}
	unsigned, negative := strings.CutPrefix(s, "-")
	if !negative {
		unsigned = strings.TrimPrefix(s, "+")
	}
	var f *big.Float
	var ok bool
	switch lower := strings.ToLower(unsigned); {
	case lower == "inf" || lower == "infinity":
		return new(big.Float).SetInf(negative), true
	case strings.HasPrefix(lower, "0x"):
		f, ok = parseHexFloat(lower)
	default:
		f, ok = parseDecimal(lower)
	}
	if !ok || f.Sign() != 0 && (f.MantExp(nil) > longDoubleMaxExp || f.MantExp(nil) < longDoubleMinExp) {
		return nil, false
	}
	if negative {
		f.Neg(f)
	}
	return f, true
}

// parseHexFloat reads 0x, digits with or without a point, and a binary exponent if there is one.
func parseHexFloat(s string) (*big.Float, bool) {
	if strings.Trim(s, "0123456789abcdefxp.+-") != "" {
		return nil, false // math/big would take an underscore
	}
	f, _, err := big.ParseFloat(s, 0, longDoubleBits, big.ToNearestEven)
	return f, err == nil
}

// parseDecimal reads digits with or without a point, and a decimal exponent if there is one. The
// result is rounded once, from the exact value.
func parseDecimal(s string) (*big.Float, bool) {
	mantissa, exponentText, hasExponent := strings.Cut(s, "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return nil, false
	}
	exponent := 0
	if hasExponent {
		e, err := strconv.ParseInt(exponentText, 10, 32)
		if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range gives the nearest: far enough
			return nil, false
		}
		exponent = int(e)
	}
	exponent -= len(fraction)
	digits = strings.TrimLeft(digits, "0")
	f := new(big.Float).SetPrec(longDoubleBits)
	if digits == "" {
		return f, true
	}
	// Far out of range: do not compute powers that a user has made up.
	if magnitude := len(digits) + exponent; magnitude > 5000 || magnitude < -5000 {
		return nil, false
	}
	n, _ := new(big.Int).SetString(digits, 10)
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exponent, -exponent))), nil)
	if exponent >= 0 {
		return f.SetInt(n.Mul(n, power)), true
	}
	return f.Quo(new(big.Float).SetInt(n), new(big.Float).SetInt(power)), true
}

// addFloat is a+b in long double; false if that is not a finite number.
func addFloat(a, b *big.Float) (*big.Float, bool) {
	if a.IsInf() || b.IsInf() {
		return nil, false
	}
	sum := new(big.Float).SetPrec(longDoubleBits).Add(a, b)
	return sum, sum.Sign() == 0 || sum.MantExp(nil) <= longDoubleMaxExp
}

// formatFloat writes a number as Redis' ld2string does for people: 17 decimals, without zeros at
// the end.
func formatFloat(f *big.Float) string {
	s := f.Text('f', 17)
	s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}
