// Package admin runs the commands that look after connections and the server.
//
// CLIENT, CONFIG, INFO, COMMAND, LATENCY, SLOWLOG, MONITOR, MEMORY, publish and subscribe, saving and
// backups.
package admin
