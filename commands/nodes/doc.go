// Package nodes runs the commands on the nodes of a cluster.
//
// CLUSTER, SENTINEL, WAIT, ROLE, in the words of Redis.
package nodes
