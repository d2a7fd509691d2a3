// Package queries runs DOC.QUERY: it plans, reads in slices and pages.
//
// Package query reads the language and evaluates it.
package queries
