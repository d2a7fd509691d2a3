package redisfmt

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// ParseInt reads a 64-bit integer as Redis' string2ll does; ok is false for any other text. A number
// has one spelling: an optional minus and digits. Leading zeros, plus, spaces and "-0" are refused.
func ParseInt(s string) (n int64, ok bool) {
	digits, negative := strings.CutPrefix(s, "-")
	switch {
	case digits == "" || len(digits) > len("9223372036854775808"):
		return 0, false
	case digits[0] == '0':
		return 0, digits == "0" && !negative
	}
	var magnitude uint64 // up to 19 digits: no overflow
	for i := range len(digits) {
		d := digits[i] - '0'
		if d > 9 {
			return 0, false
		}
		magnitude = magnitude*10 + uint64(d)
	}
	switch {
	case negative && magnitude <= 1<<63:
		return -int64(magnitude), true
	case !negative && magnitude <= math.MaxInt64:
		return int64(magnitude), true
	}
	return 0, false
}

// AddInt returns a+b; ok is false if the sum overflows.
func AddInt(a, b int64) (sum int64, ok bool) {
	sum = a + b
	return sum, (sum > a) == (b > 0)
}

// SubInt returns a-b; ok is false if the difference overflows.
func SubInt(a, b int64) (difference int64, ok bool) {
	difference = a - b
	return difference, (difference < a) == (b > 0)
}

// ParseCursor reads a cursor of SCAN as C's strtoul does; ok is false for any other text. A sign is
// legal, and an empty text means 0.
func ParseCursor(s string) (cursor uint64, ok bool) {
	s = CString(s)
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

// INCRBYFLOAT computes with the long double of C on x86: 64 bits of mantissa, 15 of exponent.
const (
	longDoubleBits   = 64
	longDoubleMaxExp = 16384      // the largest exponent, with a mantissa in [1/2, 1)
	longDoubleMinExp = -16444     // the smallest exponent of a number that is not rounded to zero
	longDoubleText   = 5*1024 - 1 // bytes of the longest text that Redis reads
)

// ParseFloat reads a number as Redis' string2ld does; ok is false for any other text. The whole text
// must be a number of C's strtold without spaces around it. Infinities and hexadecimal are legal. NaN,
// overflow and underflow are not.
func ParseFloat(s string) (f *big.Float, ok bool) {
	if len(s) > longDoubleText {
		return nil, false
	}
	unsigned, negative := strings.CutPrefix(s, "-")
	if !negative {
		unsigned = strings.TrimPrefix(s, "+")
	}
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

// parseHexFloat reads 0x, digits with an optional point, and an optional binary exponent.
func parseHexFloat(s string) (*big.Float, bool) {
	if strings.Trim(s, "0123456789abcdefxp.+-") != "" {
		return nil, false // math/big accepts underscores
	}
	f, _, err := big.ParseFloat(s, 0, longDoubleBits, big.ToNearestEven)
	return f, err == nil
}

// parseDecimal reads digits with an optional point, and an optional decimal exponent. It rounds once,
// from the exact value.
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
		if err != nil && !errors.Is(err, strconv.ErrRange) { // out of range: Go returns the nearest, which is far enough
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
	// Far out of range: do not compute powers as large as a user likes.
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

// ParseDouble reads a number as Redis' getDoubleFromObject does: with C's strtod. Infinities and hexadecimal
// are legal. NaN, overflow and underflow to 0 are not.
func ParseDouble(s string) (f float64, ok bool) {
	if n, ok := ParseInt(s); ok {
		return float64(n), true
	}
	if strings.Trim(s, decimal) == "" {
		f, err := strconv.ParseFloat(s, 64)
		return f, err == nil && (f != 0 || isZero(s))
	}
	long, ok := ParseFloat(s)
	if !ok {
		return 0, false
	}
	f, _ = long.Float64()
	return f, (f != 0) == (long.Sign() != 0) && (!math.IsInf(f, 0) || long.IsInf())
}

// ParseAnyDouble is ParseDouble for a decimal number of any size: what no double can hold is infinite or 0,
// as for C's strtod.
func ParseAnyDouble(s string) (f float64, ok bool) {
	if f, ok = ParseDouble(s); ok || strings.Trim(s, decimal) != "" {
		return f, ok
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange)
}

// decimal are the characters of a decimal number.
const decimal = "0123456789.eE+-"

// isZero reports whether all digits of a number's mantissa are 0.
func isZero(s string) bool {
	mantissa, _, _ := strings.Cut(strings.ToLower(s), "e")
	return strings.Trim(mantissa, "0.+-") == ""
}

// AddFloat returns a+b, rounded to a long double; ok is false if the sum is not finite.
func AddFloat(a, b *big.Float) (sum *big.Float, ok bool) {
	if a.IsInf() || b.IsInf() {
		return nil, false
	}
	sum = new(big.Float).SetPrec(longDoubleBits).Add(a, b)
	return sum, sum.Sign() == 0 || sum.MantExp(nil) <= longDoubleMaxExp
}

// LargestFloat returns the largest finite long double, or its negative.
func LargestFloat(negative bool) *big.Float {
	mantissa := new(big.Float).SetPrec(longDoubleBits).SetUint64(math.MaxUint64)
	if negative {
		mantissa.Neg(mantissa)
	}
	return mantissa.SetMantExp(mantissa, longDoubleMaxExp-longDoubleBits)
}

// FormatFloat writes a number as Redis' ld2string does for people: 17 decimals without trailing zeros.
func FormatFloat(f *big.Float) string {
	s := f.Text('f', 17)
	s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

// AppendDouble writes a number as C's %.17g does, and so Redis 7.0.
func AppendDouble(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, f, 'g', 17, 64)
}
