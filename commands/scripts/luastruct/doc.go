// Package luastruct is Lua's library struct as Redis has it: numbers and strings to and from bytes by a format.
//
// A format is a sequence of these options:
//
//	> <      big endian, little endian (the default)
//	![n]     largest alignment, a power of two; 8 without n
//	x        one byte of padding
//	b B      signed and unsigned byte
//	h H      2 bytes
//	l L T    8 bytes
//	i[n] I[n] n bytes, at most 32; 4 without n
//	f d      float, double
//	s        string that a zero byte ends
//	c[n]     string of n bytes; c0 is the whole string to pack, or as long as the number before it to unpack
//	space    ignored
package luastruct
