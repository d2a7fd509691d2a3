// Package crash tests servers that are killed, whose disks are full or damaged, and that stop.
package crash

import (
	"mayfly/test/harness"
	"testing"
)

func TestMain(m *testing.M) {
	harness.CollectRarely()
	harness.Main(m)
}
