package cluster

import (
	"testing"
	"time"
)

// testPatience is how long tests wait for what should happen at once.
const testPatience = 30 * time.Second

// testTimeout is the election timeout of test clusters. A busy machine that stops a node for as long deposes its leader.
const testTimeout = 500 * time.Millisecond

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// receive returns what comes from a channel.
func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(testPatience):
		t.Fatal("nothing comes")
		panic("unreachable")
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testPatience); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}
