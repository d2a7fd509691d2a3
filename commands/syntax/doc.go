// Package syntax reads how commands are written, in the notation of Redis' manual. A row's Syntax is such a
// text: it says how many arguments a command takes, and what COMMAND DOCS shows of them.
package syntax
