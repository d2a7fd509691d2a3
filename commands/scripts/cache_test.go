package scripts

import (
	"strings"
	"testing"
	"time"

	"mayfly/test/drill"
)

// TestCacheBounds shows that a cache stays within its bounds, and keeps what SCRIPT LOAD brought.
func TestCacheBounds(t *testing.T) {
	t.Parallel()
	var c Cache
	kept, err := c.Load("return 0", true)
	drill.Check(t, err)
	for i := range 2 * maxEvalScripts {
		if _, err := c.Load("return "+strings.Repeat("1", 1+i%7)+" -- "+time.Duration(i).String(), false); err != nil {
			t.Fatal(err)
		}
	}
	if s := c.Stats(); s.Scripts != maxEvalScripts+1 || s.Evicted != maxEvalScripts {
		t.Errorf("got %+v", s)
	}
	if _, ok := c.Get(strings.ToUpper(kept.SHA1())); !ok {
		t.Error("the script of SCRIPT LOAD is gone")
	}
	for i := range 70 {
		if _, err := c.Load("--"+strings.Repeat("x", 1<<20)+time.Duration(i).String(), true); err != nil {
			t.Fatal(err)
		}
	}
	if s := c.Stats(); s.Bytes > maxBytes || s.Scripts < 2 {
		t.Errorf("got %+v", s)
	}
	c.Flush()
	if s := c.Stats(); s.Scripts != 0 || s.Bytes != 0 {
		t.Errorf("got %+v", s)
	}
}
