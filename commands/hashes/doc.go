// Package hashes runs the commands on hashes, and on the ends of their fields.
//
// HSET and its family, HEXPIRE and its family, HSCAN.
package hashes
