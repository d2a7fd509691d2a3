// Package descriptor works on file descriptors of connections: reads and writes that do not wait, and who has
// something to read. It probes silent clients, and finds out who has gone and how many descriptors there are.
package descriptor
