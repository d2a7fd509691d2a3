// Package watch notes who watches which ids of which containers, and whether they have changed (WATCH).
//
// [Lists] has the marks of watchers by id: a write of an item sets them. A change of a whole container sets
// none, however many there are: a [Set] remembers the state of the container, and compares at the end. A
// [Watcher] has such a set.
package watch
