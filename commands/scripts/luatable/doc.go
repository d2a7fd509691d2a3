// Package luatable reads tables of gopher-lua whose numbers may be in the array or in the map.
//
// The library fills gaps of an array with nil, so that t[60000000] = 1 takes 1 GB. The loop of package
// scripts puts numbers beyond the end of the array into the map instead; the library's own Next and
// RawGet do not find them there.
package luatable
