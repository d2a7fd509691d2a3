// Package sortedsets has the commands of sorted sets: those of Redis 7.0 but GEO, in Redis' terms. A member
// may have an end of its own (EXPIREMEMBER).
package sortedsets
