//go:build !linux

package vfs

var allocate = allocateZeros
