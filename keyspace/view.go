package keyspace

import "unsafe"

// view looks at bytes as a string without copying them; the bytes must not change while it is used.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
