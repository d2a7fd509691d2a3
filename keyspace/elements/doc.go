// Package elements encodes the elements of collections as the bodies of items.
//
// A small hash is one item, whose body is the fields with their values, one behind the other. A string is its
// length in bytes, a colon and its bytes; an end follows its field as a plus, the moment in ms and a space:
//
//	5:color3:red4:size2:XL
//
// The fields of any other lie in pages, which are items beside the key. Its own body is a [Head]: a slash and
// the number of the collection, how many pages it may have, and the salt of the hash that finds the page of a
// field:
//
//	/2a07 3 9f3a11c0d2e4b687
//
// A page is a bucket of a linear hash. Its body is as that of a small hash:
//
//	3:jwt+1700000060000 4:abcd5:color3:red
//
// The package is pure: it reads no file, no clock, and holds no lock.
package elements
