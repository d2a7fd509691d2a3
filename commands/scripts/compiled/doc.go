// Package compiled compiles scripts in Lua and keeps them by their SHA1.
package compiled
