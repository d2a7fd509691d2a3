// Package sets holds the commands on sets: SADD and its family, and the algebra of sets.
//
// A set is a collection whose elements have no values: see package keyspace.
package sets
