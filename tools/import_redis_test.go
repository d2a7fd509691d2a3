package tools

import (
	"encoding/json"
	"testing"

	"mayfly/test/drill"
)

// TestLeftOutAfterResume: the file of --resume may know of nothing that was left out.
func TestLeftOutAfterResume(t *testing.T) {
	t.Parallel()
	r := redisReader{importer: &importer{}}
	drill.Check(t, json.Unmarshal([]byte(`{"keys":20000,"left":null}`), &r.progress))
	r.leave("list", []string{"a", "b"})
	if got := r.progress.Left["list"]; got != (leftOut{2, "a"}) || r.faults != 2 {
		t.Errorf("left out are %+v, %d keys", got, r.faults)
	}
}
