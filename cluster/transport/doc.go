// Package transport carries messages, stores and control requests between the nodes of a cluster.
//
// Raft's messages go through etcd's rafthttp. The stores for a node that is far behind, the control requests
// and the streams of published messages are requests of HTTP to the same listener. Nodes know each other by
// mutual TLS, of certificate files or of a shared secret. An unauthenticated connection gets no byte beyond
// the handshake. Without credentials a listener takes only addresses of the loopback interface.
package transport
