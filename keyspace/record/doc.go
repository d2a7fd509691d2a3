// Package record encodes items, containers and the clock as the values that lie in files.
//
// A file maps keys to records, in stores and in journals alike:
//
//	12:order-1             an item of container 12: kind d (document) or p (plain key)
//	41~…0000003:order-1    an entry of log 41, a death in container 12: kind e, see package deathlog
//	container/12           the container of number 12: kind c
//	clock                  the latest time that a reply may have revealed: kind t
//	waste                  since when each store has waste: kind w, see package storage
//	seal                   confirms a range of the file: kind s, see package aof
//
// A record is readable text. Its checksum covers the key and everything behind the checksum:
//
//	1 7c0f1a9b d 1763683200000 0 2a {"sku":"A-1","ttl":30}
//	| |        | |             | |  body, as is, to the end
//	| |        | |             | version, hexadecimal
//	| |        | |             expiry: 0 inherits, -1 never, else ms since the epoch
//	| |        | time of the last write, ms since the epoch
//	| |        kind
//	| CRC-32C of the key and of all that follows the checksum
//	version of the record format
//
// The package is pure: it reads no file, no clock, and holds no lock. It also maps ids to hash slots
// and slots to partitions, which decides in which file an item lies.
package record
