//go:build !linux

package aof

var allocate = allocateZeros
