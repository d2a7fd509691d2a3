// Package bus carries published messages between the brokers of a cluster's nodes, as the cluster bus of
// Redis does.
//
// Each node keeps one stream to each other node. A message is sent at most once: what waits for a node that
// is not connected, or that does not keep up, is dropped. The messages of a node arrive in their order, none
// twice, and no node passes on what it has received.
//
// PUBLISH goes to all nodes. Keyspace events go only to nodes whose subscribers may match them: each stream
// begins with the node's [Filter], and brings each change of it.
package bus
