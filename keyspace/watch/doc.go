// Package watch lists who watches which ids of which containers (WATCH).
package watch
