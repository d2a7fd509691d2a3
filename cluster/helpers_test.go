package cluster

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime/pprof"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/test/drill"

	"go.etcd.io/etcd/server/v3/storage/wal"
)

// testTimeout is the election timeout of test clusters. A busy machine that stops a node for as long deposes
// its leader.
const testTimeout = 500 * time.Millisecond

// mostParallel is how many tests run side by side. They wait for each other's nodes far more than they
// compute.
const mostParallel = 8

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", fmt.Sprint(mostParallel)) // it is a number
	}
	wal.SegmentSizeBytes = 1 << 20 // each start reads the last segment as a whole
	os.Exit(m.Run())
}

var (
	check      = drill.Check
	eventually = drill.Await
	inBubble   = drill.Bubble
)

// receive returns what comes from a channel.
func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(drill.Patience):
		t.Fatal("nothing comes")
		panic("unreachable")
	}
}

// freeAddrs returns addresses on a loopback host of the test's own. A node that starts again finds its own
// free.
func freeAddrs(t *testing.T, n int) (addrs []string) {
	t.Helper()
	host := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
	for port := 10_000 + rand.IntN(14_000); len(addrs) < n && port < 1<<16; port++ {
		addr := net.JoinHostPort(host, fmt.Sprint(port))
		if ln, err := net.Listen("tcp", addr); err == nil { // else a process of this machine listens on all hosts
			check(t, ln.Close())
			addrs = append(addrs, addr)
		}
	}
	if len(addrs) < n {
		t.Fatal("no ports are free")
	}
	return addrs
}

// labels counts the values of labelGoroutines.
var labels atomic.Int64

// labelGoroutines marks this goroutine and those that it and its descendants start from now on. The returned
// function ends that and waits until all of them have ended but a few that the test itself has.
func labelGoroutines(t *testing.T) (awaitEnd func()) {
	label := fmt.Sprintf("cluster %d", labels.Add(1))
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("started by", label)))
	return func() {
		t.Helper()
		pprof.SetGoroutineLabels(context.Background())
		var left string
		defer func() {
			if t.Failed() {
				t.Log("goroutines are left:\n" + left)
			}
		}()
		eventually(t, "all goroutines end", func() bool {
			left = ""
			var all bytes.Buffer
			check(t, pprof.Lookup("goroutine").WriteTo(&all, 1))
			for stack := range strings.SplitSeq(all.String(), "\n\n") {
				if strings.Contains(stack, fmt.Sprintf("%q", label)) {
					left += stack + "\n\n"
				}
			}
			return left == ""
		})
	}
}
