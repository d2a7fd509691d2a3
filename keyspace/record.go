package keyspace

import (
	"errors"
	"hash/crc32"
	"math"
	"strconv"
	"strings"
	"unsafe"
)

// castagnoli is the table of CRC-32C, which processors compute in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sum continues a CRC-32C with a string, without copying it.
func sum(crc uint32, s string) uint32 {
	return crc32.Update(crc, castagnoli, unsafe.Slice(unsafe.StringData(s), len(s)))
}

// appendKey appends the key of an item in a store: the container's number and the id, "12:order-1".
func appendKey(dst []byte, container uint32, id string) []byte {
	dst = strconv.AppendUint(dst, uint64(container), 10)
	dst = append(dst, ':')
	return append(dst, id...)
}

var errKey = errors.New("not an item's key: it must be a container's number, a colon and an id")

// splitKey is the inverse of appendKey. It accepts nothing that appendKey would not have written.
// The id shares memory with the key.
func splitKey(key string) (container uint32, id string, err error) {
	n := uint64(0)
	for i := 0; i < len(key) && i <= len("4294967295"); i++ {
		c := key[i]
		if c == ':' {
			if i == 0 || n > math.MaxUint32 || key[0] == '0' && i > 1 {
				break
			}
			return uint32(n), key[i+1:], nil
		}
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + uint64(c-'0')
	}
	return 0, "", errKey
}

// A record is the text under which an item lies in a store and in the journal:
//
//	1 7c0f1a9b d 1763683200000 0 2a {"sku":"A-1","ttl":30}
//	| |        | |             | |  body, as is, to the end
//	| |        | |             | version, hexadecimal
//	| |        | |             own end: 0, -1 or ms since the epoch
//	| |        | last write, ms since the epoch
//	| |        kind
//	| CRC-32C of the key and of all that follows the checksum
//	version of the format
const (
	recordFormat  = '1'
	recordSumFrom = 2                 // where the checksum stands
	recordSumTo   = recordSumFrom + 8 // and ends: what follows is covered by it, as is the key
	recordKindAt  = recordSumTo + 1
)

var (
	errRecordFormat = errors.New("the record has an unknown format; it may be of a newer version of mayfly")
	errRecordShort  = errors.New("the record is not complete")
	errRecordSum    = errors.New("the record's checksum does not match")
	errRecordHeader = errors.New("the record's header is malformed")
)

// appendRecord appends the record of an item that lies under a key. It allocates nothing if dst has
// room. The key may share memory with dst.
func appendRecord(dst []byte, key string, it Item) []byte {
	start := len(dst)
	dst = append(dst, recordFormat, ' ', '0', '0', '0', '0', '0', '0', '0', '0', ' ', byte(it.Kind), ' ')
	dst = strconv.AppendInt(dst, it.TS, 10)
	dst = append(dst, ' ')
	dst = strconv.AppendInt(dst, it.ExpireAt, 10)
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, it.Version, 16)
	dst = append(dst, ' ')
	dst = append(dst, it.Body...)
	crc := crc32.Update(sum(0, key), castagnoli, dst[start+recordSumTo:])
	putHex(dst[start+recordSumFrom:start+recordSumTo], crc)
	return dst
}

// decodeRecord reads the record that lies under a key and checks it. header is the offset of the
// body, which shares memory with rec. It allocates nothing.
func decodeRecord(key, rec string) (it Item, header int, err error) {
	if len(rec) < 2 || rec[0] != recordFormat || rec[1] != ' ' {
		return it, 0, errRecordFormat
	}
	if len(rec) < recordSumTo+len(" d ") {
		return it, 0, errRecordShort
	}
	want, ok := readHex(rec[recordSumFrom:recordSumTo])
	if !ok {
		return it, 0, errRecordSum
	}
	covered := rec[recordSumTo:]
	if sum(sum(0, key), covered) != want {
		return it, 0, errRecordSum
	}
	if covered[0] != ' ' || covered[2] != ' ' {
		return it, 0, errRecordHeader
	}
	it.Kind = Kind(covered[1])
	ts, rest, ok1 := strings.Cut(covered[3:], " ")
	own, rest, ok2 := strings.Cut(rest, " ")
	version, body, ok3 := strings.Cut(rest, " ")
	var err1, err2, err3 error
	it.TS, err1 = strconv.ParseInt(ts, 10, 64)
	it.ExpireAt, err2 = strconv.ParseInt(own, 10, 64)
	it.Version, err3 = strconv.ParseUint(version, 16, 64)
	if !ok1 || !ok2 || !ok3 || err1 != nil || err2 != nil || err3 != nil {
		return Item{}, 0, errRecordHeader
	}
	it.Body = body
	return it, len(rec) - len(body), nil
}

// putHex writes n as eight lower case hexadecimal digits.
func putHex(dst []byte, n uint32) {
	const digits = "0123456789abcdef"
	for i := 7; i >= 0; i-- {
		dst[i] = digits[n&15]
		n >>= 4
	}
}

// readHex reads lower case hexadecimal digits. Upper case is refused: A and a differ in one bit.
func readHex(s string) (n uint32, ok bool) {
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

// putDecimal fills dst with the decimal digits of n, zeros in front.
func putDecimal(dst []byte, n uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		dst[i] = byte('0' + n%10)
		n /= 10
	}
}

// readDecimal reads digits only: no sign, no spaces.
func readDecimal(s string) (n uint64, ok bool) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < '0' || c > '9' || n > (math.MaxUint64-9)/10 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, len(s) > 0
}
