package commands

import (
	"strconv"
	"testing"
)

// Within an object of the patch null removes a member. The patch itself replaces what is no object, also if
// it is null, and a new member gets it as it is: RFC 7396 for each match of the path, as RedisJSON applies
// it.
func TestJSONMergeNull(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, patch, want string }{
		{"$", `{"a":null,"new":null}`, `{"o":{"x":1,"y":2},"l":[1,2]}`},
		{"$.o", `{"x":null}`, `{"a":1,"o":{"y":2},"l":[1,2]}`},
		{"$.a", `{"x":null,"y":1}`, `{"a":{"y":1},"o":{"x":1,"y":2},"l":[1,2]}`},
		{"$.a", "null", `{"a":null,"o":{"x":1,"y":2},"l":[1,2]}`},
		{".a", "null", `{"a":null,"o":{"x":1,"y":2},"l":[1,2]}`},
		{"$.l[0]", "null", `{"a":1,"o":{"x":1,"y":2},"l":[null,2]}`},
		{"$.new", "null", `{"a":1,"o":{"x":1,"y":2},"l":[1,2],"new":null}`},
		{"$.new", `{"x":null}`, `{"a":1,"o":{"x":1,"y":2},"l":[1,2],"new":{"x":null}}`},
		{"$", "null", "null"},
	} {
		w := newHarness(t)
		w.expect("OK", "JSON.SET", "k", "$", `{"a":1,"o":{"x":1,"y":2},"l":[1,2]}`)
		w.expect("OK", "JSON.MERGE", "k", c.path, c.patch)
		w.expect(strconv.Quote(c.want), "JSON.GET", "k")
	}
}
