package engine

import (
	"fmt"
	"strings"
	"testing"
)

func TestErrorCodesAreBounded(t *testing.T) {
	t.Parallel()
	var c errorCounts
	for i := range 3 * maxErrorCodes {
		c.increment(fmt.Sprintf("CODE%d text", i))
	}
	c.increment("nocode")
	c.increment(strings.Repeat("X", 40) + " text")
	if len(c.byCode) > maxErrorCodes+1 || c.byCode["CODE0"] != 1 || c.byCode["ERR"] != 2*maxErrorCodes+2 {
		t.Errorf("%d codes, %d times ERR", len(c.byCode), c.byCode["ERR"])
	}
}
