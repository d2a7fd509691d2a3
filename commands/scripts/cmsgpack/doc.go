// Package cmsgpack is Lua's library cmsgpack as Redis has it: Lua values to and from MessagePack, as lua-cmsgpack 0.4.
//
// It writes the bytes of that library, which a general codec does not: whole numbers in the shortest form, others as
// floats where that is exact, tables as arrays if their keys are 1 to n, nil for functions and for tables within 16
// others. It reads no types of extensions or binary strings, which that library does not know.
package cmsgpack
