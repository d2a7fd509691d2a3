package server

import "syscall"

// fileLimit raises the limit on open files to want, or as near to it as the system allows. It returns the new
// limit, and never lowers it. As in Redis, a privileged process raises the hard limit too.
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
