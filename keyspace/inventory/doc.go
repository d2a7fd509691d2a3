// Package inventory reads the records of the catalogue at the start, and decides which containers there are.
//
// Records come in the order of their commits, the last one of a container counts. A log exists if a container says that it
// is its own, and a group if its log does. [Inventory.Listed] gives every listed container a number for SELECT of its own.
package inventory
