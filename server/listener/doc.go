// Package listener opens the sockets on which a server waits for connections: TCP on several addresses, and unix sockets.
package listener
