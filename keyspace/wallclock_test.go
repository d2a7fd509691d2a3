package keyspace

import (
	"bytes"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/expiry/clock"
	"mayfly/vfs/vfstest"

	"github.com/rs/zerolog"
)

// lockedBuffer is a log that several goroutines write to.
type lockedBuffer struct {
	mu  sync.Mutex // protects buf
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *lockedBuffer) Reset() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf.Reset()
}

// TestClockThatWasSetIsTold: the log tells of a clock that was set forward and back, while a keyspace runs
// and at the next start, and once only. ClockAhead is by how much.
func TestClockThatWasSetIsTold(t *testing.T) {
	t.Parallel()
	m := &steppedMachine{wall: epoch * int64(time.Millisecond)}
	var log lockedBuffer
	disk := vfstest.NewMemory()
	start := func() *opened {
		log.Reset()
		o := &opened{t: t, opt: Options{FS: disk, Dir: vfstest.Dir, Partitions: 2, NoPurge: true, Clock: clock.SystemReading(0, m.read, m.pass), Log: zerolog.New(&log)}}
		o.start()
		return o
	}
	set := func(d time.Duration) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.wall += int64(d)
	}
	expect := func(o *opened, ahead time.Duration, lines ...string) {
		t.Helper()
		text := log.String()
		for _, line := range lines {
			if strings.Count(text, line) != 1 {
				t.Errorf("the log does not say once %q:\n%s", line, text)
			}
		}
		if got := o.ClockAhead(); got.Round(time.Second) != ahead {
			t.Errorf("it is %v ahead, want %v", got, ahead)
		}
	}
	const forward, ahead = `"message":"the wall clock went forward`, `"message":"the time of the data is ahead of the wall clock`
	o := start()
	if text := log.String(); strings.Contains(text, forward) || strings.Contains(text, ahead) {
		t.Errorf("a clock that nobody has set: %s", text)
	}
	set(time.Hour)
	o.watchClock()
	o.watchClock()
	expect(o, 0, forward)
	set(-time.Hour)
	o.watchClock()
	o.watchClock()
	expect(o, time.Hour, forward, ahead)
	o.stop()

	o = start()
	expect(o, time.Hour, ahead)
	set(2 * time.Hour)
	o.watchClock()
	expect(o, 0, ahead, forward, "the wall clock has reached the time of the data")
	o.stop()
}
