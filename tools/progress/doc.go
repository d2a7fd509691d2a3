// Package progress shows how far long work is: on a terminal as one line that changes, elsewhere as a line
// now and then. It tells what is done a second, and how long the rest takes.
package progress
