// Package forming decides to which cluster a node belongs: the first start of a cluster, and a node that has
// lost its disk.
//
// A node asks all peers (hello). If one belongs to a cluster, the node joins that with a new id. If all
// answer and none belongs to a cluster, the founder gives out ids. It writes its identity, has each peer
// write its own (form), and begins the cluster when all have done so (begin). Before that none of them takes
// part in raft, so no vote is given by an id whose disk was lost meanwhile. The founder is the one node whose
// folder has data, else the one with the least name.
package forming
