//go:build !(darwin || freebsd || linux)

package aof

import "math"

// freeDisk does not know: writers find out when the disk is full.
func freeDisk(string) (int64, error) { return math.MaxInt64, nil }

// diskSize does not know.
func diskSize(string) (int64, error) { return math.MaxInt64, nil }
