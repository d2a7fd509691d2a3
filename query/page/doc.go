// Package page gathers the rows of one page of a query: offset, limit, order, DISTINCT and groups.
//
//   - A [Page] takes one document after the other and returns rows and the next cursor (page.go, sorted.go).
//   - Groups hold the totals of aggregates (groups.go).
//   - A [Cursor] is the text between two pages (cursor.go). The server keeps nothing.
package page
