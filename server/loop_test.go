package server

import (
	"io"
	"strconv"
	"strings"
	"testing"

	"mayfly/commands/engine"
)

// quietEngine is a fake engine without a history that knows only GET.
type quietEngine struct{ *fakeEngine }

func (e quietEngine) Execute(_ *engine.Session, args []string) engine.Outcome {
	return engine.Outcome{Reply: engine.Bulk(e.values[args[1]])}
}

// newTrip returns a function that sends a pipeline of depth GETs of a document of 285 bytes and reads the
// replies. Both ends are in this process; the connection is real.
func newTrip(t testing.TB, depth int) func() {
	e := newFakeEngine()
	e.values["k"] = strings.Repeat("x", 285)
	c := dial(t, newTestServer(t).run(t, quietEngine{e}, nil))
	request := []byte(strings.Repeat(command("GET", "k"), depth))
	reply := make([]byte, depth*len("$285\r\n"+e.values["k"]+"\r\n"))
	return func() {
		if _, err := c.Write(request); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c.Conn, reply); err != nil {
			t.Fatal(err)
		}
	}
}

// Between reading a command and writing its reply the loop allocates nothing.
func TestLoopDoesNotAllocate(t *testing.T) {
	const depth = 64
	// The race detector makes the pools of buffers forget some: a few allocations a pipeline.
	if n := testing.AllocsPerRun(200, newTrip(t, depth)); n > depth/4 {
		t.Errorf("%.0f allocations for %d commands", n, depth)
	}
}

// BenchmarkLoop measures the whole way of a pipeline except the commands themselves. Its time is that of both
// ends.
func BenchmarkLoop(b *testing.B) {
	for _, depth := range []int{1, 16, 64} {
		b.Run(strconv.Itoa(depth), func(b *testing.B) {
			loop := newTrip(b, depth)
			b.ReportAllocs()
			for b.Loop() {
				loop()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*depth), "ns/command")
		})
	}
}
