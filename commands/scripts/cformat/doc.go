// Package cformat formats numbers and texts as printf of C does, for Lua's string.format.
package cformat
