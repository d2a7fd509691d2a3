// Package crash tests servers that are killed, whose disks are full or damaged, and that stop.
package crash

import (
	"cmp"
	"flag"
	"os"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if !drill.On() { // the drill has the server tune its collector, as users have
		// Servers load small heaps again and again: collections made a sixth of their work.
		_ = os.Setenv("GOGC", cmp.Or(os.Getenv("GOGC"), "400")) // the name is legal
	}
	harness.Main(m)
}
