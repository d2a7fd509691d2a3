// Package replica has what a keyspace and the cluster that replicates it exchange: positions, the Replicator,
// errors, records, batches.
//
// The leader's memory is ahead of the log: [Replicator.Replicate] commits a batch of its journal by a
// majority before the journal writes it. A follower applies batches that are committed. So the files of every
// node hold exactly the committed state at one position of the log, and each group of its journal ends with
// the records of a [Tail].
package replica
