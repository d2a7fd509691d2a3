package libtest

import (
	"errors"
	"testing"

	lua "github.com/yuin/gopher-lua"
)

// CheckBounds runs expressions with a budget of 4 MiB, and fails for one that does not end over the limit.
func CheckBounds(t *testing.T, open func(*lua.LState, func(bytes int)), expressions ...string) {
	t.Helper()
	for _, e := range expressions {
		var charged int
		over := Over(t, open, func(n int) {
			if charged += n; charged > 4<<20 {
				panic(ErrLimit)
			}
		}, e)
		if !over {
			t.Errorf("%s takes %d bytes, and does not end over the limit", e, charged)
		}
	}
}

// CheckInterrupt runs expressions that work for long without allocating much, and fails for one that does not ask
// whether to go on.
func CheckInterrupt(t *testing.T, open func(*lua.LState, func(bytes int)), expressions ...string) {
	t.Helper()
	for _, e := range expressions {
		asked := 0
		if !Over(t, open, func(int) {
			if asked++; asked == 100 {
				panic(ErrLimit)
			}
		}, e) {
			t.Errorf("%s asks %d times whether to go on", e, asked)
		}
	}
}

// Over reports whether a function of Lua with a body ends with ErrLimit. No other panic may come out of it.
func Over(t testing.TB, open func(*lua.LState, func(bytes int)), charge func(bytes int), body string) bool {
	t.Helper()
	L := lua.NewState(lua.Options{RegistrySize: 16 << 10, RegistryMaxSize: 1 << 20})
	defer L.Close()
	open(L, charge)
	err := L.DoString(body)
	var failed *lua.ApiError
	if errors.As(err, &failed) && failed.Cause != nil {
		t.Errorf("%s panics: %v", body, err)
	}
	return err != nil && failed != nil && failed.Object.String() == ErrLimit.Error()
}
