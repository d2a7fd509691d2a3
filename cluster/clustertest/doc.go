// Package clustertest puts processes of a test on a network of their own, whose links the test cuts and
// slows.
//
// Each host is a network namespace with a TUN device. The test itself is the switch between them: it reads
// the packets of one device and writes them to another. So a cut loses packets as a cable does, in one
// direction or both, and the TCP of the kernel does the rest. Nothing leaves the namespaces. It needs Linux
// and root.
package clustertest
