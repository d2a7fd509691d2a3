// Package vfstest has file systems for tests: in memory, failing, full, and as a power cut leaves them.
package vfstest
