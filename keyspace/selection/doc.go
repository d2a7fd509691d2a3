// Package selection reads the items of a container that a query may select, in slices.
//
//   - A [Plan] says which ranges of which index a query reads.
//   - A [Reader] reads them, or all items, or some in the order of their ends or by their ids.
//   - A [Place] and an [EndPlace] are where reading goes on: cursors hold them as text.
//
// It has no locks. A [Source] locks the partitions for each slice, and removes the dead that a reader meets.
package selection
