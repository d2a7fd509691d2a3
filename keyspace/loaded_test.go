package keyspace

import (
	"strings"
	"sync/atomic"
	"testing"

	"mayfly/expiry"
	"mayfly/test/drill"
)

// TestLoadedBytesAreCounted: the bytes of the stores and of the journals count.
func TestLoadedBytesAreCounted(t *testing.T) {
	t.Parallel()
	var loaded atomic.Int64
	o := open(t, func(opt *Options) { opt.Partitions, opt.Loaded = 1, &loaded })
	body := strings.Repeat("x", 3<<20)
	o.put("0", "stored", body, expiry.Inherit)
	drill.Check(t, o.Save())
	o.put("0", "journaled", body, expiry.Inherit)
	drill.Check(t, o.Halt())
	opt := o.opt
	opt.Dir = newDir(o.opt.FS)
	copyFolder(t, o.opt.FS, o.Dir(), opt.Dir)
	again := &opened{t: t, clock: o.clock, opt: opt}
	loaded.Store(0)
	again.start()
	if got := loaded.Load(); got < 6<<20 || got > 7<<20 {
		t.Errorf("%d bytes are counted", got)
	}
	again.stop()
}
