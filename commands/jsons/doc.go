// Package jsons runs the commands of RedisJSON, JSON.*.
//
// A document is edited in its text: see packages jsondoc, jsonpath and jsonedit.
package jsons
