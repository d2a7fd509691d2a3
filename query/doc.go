// Package query reads and evaluates a subset of Cosmos DB's query language over the text of JSON documents.
// It is pure: it knows no store, no session and no clock.
//
//   - [Parse] reads a query, binds its parameters and checks its limits (parser.go, expression.go).
//   - An [Evaluator] judges and projects one document at a time (evaluate.go, functions.go, spatial.go). It
//     reads the paths of the query in one pass over the text and decodes no more than the query uses.
//     Conditions of one path reject a document before the rest of its text is read (prefilter.go).
//   - Planners see conditions and ORDER BY as [Expr] (expr.go): package predicates says what indexes can
//     answer. An [Extractor] reads the values of paths for indexes.
//   - Package page gathers the rows of a page. It asks a query for its clauses and an evaluator for values
//     (rows.go).
//
// Missing members are undefined, not null. Comparisons of different types are undefined, AND, OR and NOT
// have three values, and only true selects. Numbers are doubles. [Value] says how values are ordered.
package query
