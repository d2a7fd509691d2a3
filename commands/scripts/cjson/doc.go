// Package cjson is Lua's library cjson as Redis has it: Lua values to and from JSON, with the errors of lua-cjson 2.1.
//
// It differs from a codec of JSON documents on purpose: encode escapes / and DEL and passes bytes that are no UTF-8
// through, decode reads hexadecimal numbers, inf and nan, and both end at the same places with the same errors. Members
// are written in the order of insertion; in Redis the order is that of a hash.
package cjson
