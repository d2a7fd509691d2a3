package keyspace

import (
	"math/bits"
	"strings"
)

// Slots is the number of hash slots, as in Redis Cluster.
const Slots = 1 << 14

// Slot gives the hash slot of an id: CRC16 (XMODEM) modulo 16384. As in Redis Cluster only the part
// between the first { and the next } counts if there is one and it is not empty, so that related
// ids can be kept together: "{user1}.cart" and "{user1}.orders" share a slot.
func Slot(id string) int {
	if open := strings.IndexByte(id, '{'); open >= 0 {
		if length := strings.IndexByte(id[open+1:], '}'); length > 0 {
			id = id[open+1 : open+1+length]
		}
	}
	var crc uint16
	for i := 0; i < len(id); i++ {
		crc = crc<<8 ^ crc16Table[byte(crc>>8)^id[i]]
	}
	return int(crc % Slots)
}

// partitionNumber gives the partition, of so many, to which an id belongs.
func partitionNumber(id string, partitions int) int {
	return Slot(id) * partitions >> bits.Len(Slots-1)
}

var crc16Table = func() (table [256]uint16) {
	const polynomial = 0x1021
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ polynomial
			} else {
				crc <<= 1
			}
		}
		table[i] = crc
	}
	return table
}()
