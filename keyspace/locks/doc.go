// Package locks locks partitions: in ascending order, and without waiting for a holder that takes long.
package locks
