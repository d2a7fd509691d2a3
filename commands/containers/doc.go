// Package containers runs the commands on containers: their rules, plans, undo and indexes.
//
// CONTAINER.*, INDEX.* and DOC.EXPLAIN.
package containers
