package record

import (
	"math/bits"
	"strings"
)

// Slots is the number of hash slots, as in Redis Cluster.
const Slots = 1 << 14

// Slot returns the hash slot of an id: CRC16 (XMODEM) modulo 16384. As in Redis Cluster only the part
// between the first { and the next } counts, if both are there and it is not empty: "{user1}.cart" and
// "{user1}.orders" share a slot.
func Slot(id string) int {
	if open := strings.IndexByte(id, '{'); open >= 0 {
		if length := strings.IndexByte(id[open+1:], '}'); length > 0 {
			id = id[open+1 : open+1+length]
		}
	}
	return int(crc16(id) % Slots)
}

// crc16 is CRC16 (XMODEM). Every command computes it for each of its ids. It takes eight bytes a step,
// because their look-ups are independent of one another.
func crc16(s string) (crc uint16) {
	for ; len(s) >= 8; s = s[8:] {
		crc = crc16Tables[7][byte(crc>>8)^s[0]] ^ crc16Tables[6][byte(crc)^s[1]] ^
			crc16Tables[5][s[2]] ^ crc16Tables[4][s[3]] ^ crc16Tables[3][s[4]] ^
			crc16Tables[2][s[5]] ^ crc16Tables[1][s[6]] ^ crc16Tables[0][s[7]]
	}
	for i := range len(s) {
		crc = crc<<8 ^ crc16Tables[0][byte(crc>>8)^s[i]]
	}
	return crc
}

// MaxPartitions is the largest number of partitions of a data folder.
const MaxPartitions = 256

// Partition returns the number of the partition, of the given number of partitions, to which an id belongs.
func Partition(id string, partitions int) int {
	return Slot(id) * partitions >> bits.Len(Slots-1)
}

// crc16Tables hold, in table n, the CRC of each byte with n zero bytes behind it.
var crc16Tables = func() (tables [8][256]uint16) {
	const polynomial = 0x1021
	for i := range 256 {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ polynomial
			} else {
				crc <<= 1
			}
		}
		tables[0][i] = crc
	}
	for zeros := 1; zeros < len(tables); zeros++ {
		for i := range 256 {
			before := tables[zeros-1][i]
			tables[zeros][i] = before<<8 ^ tables[0][before>>8]
		}
	}
	return tables
}()
