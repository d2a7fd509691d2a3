// Package redisfmt reads and writes globs, numbers and words exactly as Redis 7.0 does, its oddities
// included. It is pure text: it imports nothing of mayfly. All functions are safe for concurrent use.
//
//   - glob.go: the patterns of KEYS, SCAN and PSUBSCRIBE
//   - numbers.go: integers, cursors, and the long doubles of INCRBYFLOAT
//   - line.go: the words of a line, as in redis-cli and redis.conf
//   - words.go: keywords, zero-terminated strings and quoted arguments
package redisfmt
