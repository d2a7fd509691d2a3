package luatable

import (
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// TestNumbersInTheMap reads a table whose numbers are not in its array.
func TestNumbersInTheMap(t *testing.T) {
	table := &lua.LTable{Metatable: lua.LNil}
	for _, k := range []lua.LNumber{5, 7, 1e7, 2.5} {
		table.RawSetH(k, k)
	}
	table.RawSetString("s", lua.LTrue)
	table.Append(lua.LNumber(1))
	want := []lua.LValue{lua.LNumber(1), lua.LNumber(5), lua.LNumber(7), lua.LNumber(1e7), lua.LNumber(2.5), lua.LString("s")}
	key := lua.LValue(lua.LNil)
	for i := 0; ; i++ {
		k, v, _, ok := Next(table, key)
		if !ok {
			t.Fatalf("after %v: no key", key)
		}
		if k == lua.LNil {
			if i != len(want) {
				t.Fatalf("%d keys, want %d", i, len(want))
			}
			break
		}
		if i >= len(want) || k != want[i] || Get(table, k) != v {
			t.Fatalf("key %d is %v, want %v", i, k, want)
		}
		key = k
	}
	if _, _, _, ok := Next(table, lua.LString("none")); ok {
		t.Error("a key that is none has a next one")
	}
	if n, _ := Len(table); n != 1 {
		t.Errorf("length %d", n)
	}
	table.RawSetH(lua.LNumber(2), lua.LTrue)
	if n, _ := Len(table); n != 2 {
		t.Errorf("length %d", n)
	}
}
