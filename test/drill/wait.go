package drill

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Patience is how long anything that should happen soon may take on a busy machine.
const Patience = 30 * time.Second

// Await waits until something has come about in another process, or in goroutines that give no sign of it. A
// test that waits in vain ends, and logs what it saw last.
func Await(t testing.TB, what string, done func() bool, saw ...func() string) {
	t.Helper()
	nap := time.Millisecond // longer each time: to look may be work for another process
	for deadline := time.Now().Add(Patience); !done(); nap = min(2*nap, 50*time.Millisecond) {
		time.Sleep(nap)
		if time.Now().After(deadline) {
			for _, last := range saw {
				t.Log(last())
			}
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// Done reports whether a channel is closed, or has something.
func Done(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

var started = time.Now()

// Bubble runs a test on a clock of its own, which moves when all its goroutines wait.
func Bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		Pass(time.Second - time.Since(started)) // the clock of a bubble begins in 2000, before the process
		test(t)
	})
}

// Pass moves the clock of a bubble, and waits until its goroutines have done what was due.
func Pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Check ends a test that an error makes pointless.
func Check(t testing.TB, errs ...error) {
	if err := errors.Join(errs...); err != nil {
		t.Helper()
		t.Fatal(err)
	}
}

// Report fails a test, which goes on, if there is an error.
func Report(t testing.TB, errs ...error) {
	if err := errors.Join(errs...); err != nil {
		t.Helper()
		t.Error(err)
	}
}
