// Package buntdbtest reads data folders with the stock buntdb library, for tests.
package buntdbtest
