// Package selection reads the items of a container that a query may select, in slices.
//
//   - A [Plan] says which ranges of which index a query reads.
//   - An [IndexReader] reads them from the trees of all partitions, in the order of the plan.
//   - An [EndsReader] reads the documents in the order of their deaths, from the expiry queues.
//   - A [ScanReader] reads all items from the newest to the oldest.
//   - A [HashReader] reads them in the order of the hashes of ids, which survives restarts.
//   - A [Place] and an [EndPlace] are where a reader goes on: cursors hold them as text.
//
// It has no locks. The caller locks the partitions for each slice and removes the dead that a reader met.
package selection
