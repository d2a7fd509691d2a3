// Package aoftest helps tests of files: disks that fail, files that are planted, ends that were cut off.
package aoftest
