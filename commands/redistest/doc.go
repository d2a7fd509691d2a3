// Package redistest starts a real Redis, which tests compare with.
package redistest
