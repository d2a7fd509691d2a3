// Package jsonedit edits values in the text of JSON documents, as the JSON.* commands of RedisJSON do.
//
// Transform replaces the values at spans, which may nest: inner ones first. The other functions make one
// value of another. What an edit does not name keeps its bytes. All functions expect valid JSON with any
// root, are pure and safe for concurrent use. Sizes and nesting are not checked: the caller judges the new
// document.
package jsonedit
