package jsonedit

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Number is a number of JSON as calculations read it.
type Number struct {
	text    string
	integer int64
	exact   bool // it is the integer
	double  float64
}

// ReadNumber reads a number.
func ReadNumber(text string) Number {
	integer, err := strconv.ParseInt(text, 10, 64)
	double, _ := strconv.ParseFloat(text, 64)
	return Number{text, integer, err == nil, double}
}

// Add returns the sum of two numbers. That of two integers of 64 bits is exact; another one is a double and
// is written with a point or an exponent. The error says that the sum is out of range, in the words of
// RedisJSON.
func Add(value, by Number) (string, error) {
	return calculate(value, by, "sum", func(a, b int64) (int64, bool) {
		sum := a + b
		return sum, (sum > a) == (b > 0)
	}, func(a, b float64) float64 { return a + b })
}

// Multiply returns the product of two numbers, written as Add does. The error says that the product is out of
// range.
func Multiply(value, by Number) (string, error) {
	return calculate(value, by, "product", multiplyIntegers, func(a, b float64) float64 { return a * b })
}

func multiplyIntegers(a, b int64) (product int64, ok bool) {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	negative := (a < 0) != (b < 0)
	if high != 0 || low > math.MaxInt64+1 || low == math.MaxInt64+1 && !negative {
		return 0, false
	}
	if negative {
		return -int64(low), true
	}
	return int64(low), true
}

func magnitude(n int64) uint64 {
	if n < 0 {
		return -uint64(n)
	}
	return uint64(n)
}

func calculate(a, b Number, what string, integers func(a, b int64) (int64, bool), doubles func(a, b float64) float64) (string, error) {
	if a.exact && b.exact {
		n, ok := integers(a.integer, b.integer)
		if !ok {
			return "", fmt.Errorf("numeric overflow: the %s of %s and %s is out of range", what, a.text, b.text)
		}
		return strconv.FormatInt(n, 10), nil
	}
	f := doubles(a.double, b.double)
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return "", fmt.Errorf("result is not a number: the %s of %s and %s is out of range", what, a.text, b.text)
	}
	return formatDouble(f), nil
}

// formatDouble writes a double as RedisJSON does: the shortest digits, a point or an exponent always, an
// exponent if the point is more than 16 digits behind the first one or 5 before it.
func formatDouble(f float64) string {
	if f == 0 {
		if math.Signbit(f) {
			return "-0.0"
		}
		return "0.0"
	}
	text := strconv.FormatFloat(f, 'e', -1, 64)
	mantissa, exponent, _ := strings.Cut(text, "e")
	e, _ := strconv.Atoi(exponent)
	if e < -5 || e >= 16 {
		return mantissa + "e" + strconv.Itoa(e)
	}
	if text = strconv.FormatFloat(f, 'f', -1, 64); strings.IndexByte(text, '.') < 0 {
		text += ".0"
	}
	return text
}
