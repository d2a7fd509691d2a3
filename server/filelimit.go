package server

import "syscall"

// fileLimit raises the limit on open files, if it is lower, to what is wanted or as near to that as
// the system allows, and returns what it is then. As in Redis, also the hard limit is raised by
// whoever may do that.
func fileLimit(want int) int {
	const unlimited = 1 << 30
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > unlimited {
		return unlimited
	}
	if limit.Cur >= uint64(want) {
		return int(limit.Cur)
	}
	for _, raised := range []syscall.Rlimit{
		{Cur: uint64(want), Max: max(limit.Max, uint64(want))},
		{Cur: limit.Max, Max: limit.Max},
	} {
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) == nil {
			return int(raised.Cur)
		}
	}
	return int(limit.Cur)
}
