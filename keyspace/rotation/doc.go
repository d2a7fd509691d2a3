// Package rotation keeps a list whose members come and go, and from which the purge and eviction take their
// turns.
package rotation
