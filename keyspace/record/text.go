package record

import (
	"hash/crc32"
	"math"
	"unsafe"
)

// Castagnoli is the table of CRC-32C, which processors compute in hardware.
var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum continues a CRC-32C with a string, without copying it.
func Sum(crc uint32, s string) uint32 {
	return crc32.Update(crc, Castagnoli, Bytes(s))
}

// View looks at bytes as a string without copying them. The bytes must not change while it is in use.
func View(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// Bytes looks at a string as bytes without copying it. They must not be changed.
func Bytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// PutHex writes n as eight lower case hexadecimal digits.
func PutHex(dst []byte, n uint32) {
	const digits = "0123456789abcdef"
	for i := 7; i >= 0; i-- {
		dst[i] = digits[n&15]
		n >>= 4
	}
}

// ReadHex reads lower case hexadecimal digits. It refuses upper case: A and a differ in one bit.
func ReadHex(s string) (n uint32, ok bool) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			n = n<<4 | uint32(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | uint32(c-'a'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// PutDecimal fills dst with the decimal digits of n, zeros in front.
func PutDecimal(dst []byte, n uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
}

// ReadDecimal reads digits only: no sign, no spaces.
func ReadDecimal(s string) (n uint64, ok bool) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < '0' || c > '9' || n > (math.MaxUint64-9)/10 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, len(s) > 0
}
