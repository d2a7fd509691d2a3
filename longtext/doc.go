// Package longtext copies texts of any length in pieces.
//
// The runtime cannot interrupt one copy. If the memory collector waits for that, it signals the thread over
// and over, which makes a long copy slower by far, and nobody else has a processor meanwhile.
package longtext
