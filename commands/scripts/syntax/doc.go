// Package syntax parses Lua 5.1 as PUC-Rio's parser does, with its words for errors.
//
// gopher-lua's own parser takes some of Lua 5.2, words its errors differently and recurses without a
// bound. This one makes the same tree, which gopher-lua compiles, and refuses what nests too deeply.
package syntax
