// Package vfs is the file system beneath everything that is kept on disk, as a value that its user holds.
//
// [OS] is the real one. Tests replace it by one of package vfstest, each by its own.
package vfs
