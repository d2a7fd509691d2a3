// Package keys runs the commands of Redis on keys and strings.
//
// Plain values, their expiration, moves between names and containers, SCAN.
package keys
