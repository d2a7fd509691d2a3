// Package streamid has the ids of entries of a stream, as Redis Streams write them: <ms>-<seq>.
//
// The package is pure.
package streamid
