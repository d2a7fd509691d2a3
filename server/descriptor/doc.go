// Package descriptor works on file descriptors of connections: reads and writes that do not wait, probes of
// silent clients, who has gone, and how many.
package descriptor
