// Package aoftest helps tests of files: disks that fail, files with given content, ends that were cut off.
package aoftest
