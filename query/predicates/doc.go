// Package predicates extracts from a query what need not be judged document by document.
//
//   - [TermsOf] returns the conditions that indexes can answer, and [OrderOf] the order that they can give
//     (terms.go).
//   - [IDsOf] returns the ids that are looked up (ids.go).
//   - [EndsOf] returns the range of the order of death (ends.go).
//   - [NearestOf] returns the point around which an index over points is read (nearest.go).
package predicates
