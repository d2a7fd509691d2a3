package commands

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestRunInSeveralRanges: items whose long strings tie in an index come from all ranges of an ordered query,
// on pages of any size.
func TestRunInSeveralRanges(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.do(1, "CONTAINER.SET", "c", "TTL", "1000")
	w.expect("OK", "INDEX.CREATE", "c", "/a", "/b")
	w.engine.Keyspace().BuildIndexes()
	long := strings.Repeat("z", 300)
	for i, b := range []string{"u", "v", "w", "x"} {
		w.expect("OK", "DOC.PUT", "c", fmt.Sprint(i), fmt.Sprintf(`{"a":%q,"b":%q}`, long, b))
		w.expect("OK", "DOC.PUT", "c", fmt.Sprint("other", i), fmt.Sprintf(`{"a":%q,"b":%q}`, long+"y", b))
	}
	for direction, want := range map[string][]string{"ASC": {`"u"`, `"w"`, `"x"`}, "DESC": {`"x"`, `"w"`, `"u"`}} {
		text := fmt.Sprintf(`SELECT VALUE b WHERE a = %q AND b IN ("u", "w", "x") ORDER BY b %s`, long, direction)
		for _, count := range []string{"1", "2", "100"} {
			if got := w.allPages(t, count, nil, "c", text); !slices.Equal(got, want) {
				t.Errorf("%s, COUNT %s: got %q, want %q", direction, count, got, want)
			}
		}
	}
}
