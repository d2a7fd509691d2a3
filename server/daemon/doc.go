// Package daemon shows the system that the process runs: the log file, the pidfile and notices to systemd.
package daemon
