// Package crash tests servers that are killed, whose disks are full or damaged, and that stop.
package crash

import (
	"cmp"
	"mayfly/test/harness"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	// Servers load small heaps again and again: collections made a sixth of their work.
	_ = os.Setenv("GOGC", cmp.Or(os.Getenv("GOGC"), "400")) // the name is legal
	harness.Main(m)
}
