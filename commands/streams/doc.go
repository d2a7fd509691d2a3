// Package streams runs the commands that read logs of deaths as streams of Redis, X*.
//
// Groups of consumers, claims, and DOC.REVIVE.
package streams
