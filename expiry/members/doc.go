// Package members reads the members of a document that decide when it dies: its ttl, and the deadline that
// its container names.
//
// It looks at root members only, in one pass over valid JSON. The package is pure.
package members
