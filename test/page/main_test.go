package page

import (
	"testing"

	"mayfly/test/harness"
)

func TestMain(m *testing.M) { harness.Main(m, func() { endChromium() }) }
