// Package jsonpath finds values in the text of JSON documents by the two path dialects of RedisJSON.
//
// A path that is $ or begins with $. or $[ is a JSONPath and has any number of matches. Any other path is
// legacy: of its matches, commands answer the first. Both have one grammar:
//
//	.name  ['name']  ["a","b"]   members; unquoted names have letters, digits and -_`~+#%$^/:
//	[0]  [-1]  [0,2]  [1:5:2]    elements; negative ones count from the end
//	.*  [*]                      all members or elements
//	..name  ..*  ..[…]           the same in the value and everything below it
//	[?(@.price < $.limit)]       those for which the filter holds: == != < <= > >= =~ && || and parentheses
//
// Paths are evaluated on the text, without decoding it. The matches are in the order of RedisJSON: of ..name
// first the member of the value itself, then those below. No match comes twice.
//
// All functions are safe for concurrent use. Source: the grammar of RedisJSON 8.6.
package jsonpath
