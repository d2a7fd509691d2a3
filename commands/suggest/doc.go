// Package suggest guesses what an unknown word was meant to be: a command, an option, or what to do instead.
package suggest
