// Package jsondoc works on the text of JSON documents: it validates, reads paths, patches and merges. It
// is pure: it knows no sessions, no store and no clock. All functions are safe for concurrent use.
//
// Documents are kept as the user wrote them, so every edit copies the bytes that it does not name. Two
// readers share the work:
//
//   - [Parse] and its scan (validate.go) judge text that a client sends. One pass checks JSON, UTF-8 and
//     nesting, and finds the root members ttl, _ts and _etag.
//   - Everything else reads text that has passed Parse, with [jsontext.Walker] over members and
//     elements. [Pointer] and [Values] read, [Patch] and [MergePatch] edit.
//
// Functions that ask for a valid object may panic on other text.
package jsondoc
