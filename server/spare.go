package server

import (
	"net"
	"os"
	"time"

	"mayfly/expiry/clock"
)

// A spareFile is a file descriptor in reserve. When the process has used up its descriptors, a client can
// still be accepted and refused instead of being left waiting.
type spareFile struct{ file *os.File }

// refill opens the descriptor, if it is used up.
func (r *spareFile) refill() {
	if r.file == nil {
		r.file, _ = os.Open(os.DevNull) // tried again after the next connection
	}
}

// refuse closes one connection that waits to be accepted, and reports whether there was one.
func (r *spareFile) refuse(ln net.Listener) bool {
	const timeout = 10 * time.Millisecond
	limited, ok := ln.(interface{ SetDeadline(time.Time) error })
	if !ok || r.file == nil || limited.SetDeadline(clock.Deadline(timeout)) != nil {
		return false
	}
	_ = r.file.Close()
	r.file = nil
	nc, err := ln.Accept()
	if err == nil {
		_ = nc.Close()
	}
	_ = limited.SetDeadline(time.Time{})
	r.refill()
	return err == nil
}
