package luastruct

import (
	"testing"

	lua "github.com/yuin/gopher-lua"

	"mayfly/commands/scripts/lualib/libtest"
)

func TestHostileFormatsEndOverTheLimit(t *testing.T) {
	t.Parallel()
	libtest.CheckBounds(t, Open,
		`struct.pack(string.rep('x', 50000000))`,
		`local s = string.rep('x', 1000000) for i = 1, 1000 do struct.pack('sc0', s, s) end`,
		`for i = 1, 1e9 do struct.unpack('bbbb', 'abcd') end`,
	)
}

func TestLongWorkAsksWhetherToGoOn(t *testing.T) {
	t.Parallel()
	libtest.CheckInterrupt(t, Open,
		`local f = string.rep(' ', 100000) for i = 1, 1000 do struct.size(f) end`,
	)
}

// FuzzStruct checks that no function panics, and that what unpack reads is what pack wrote.
func FuzzStruct(f *testing.F) {
	for _, seed := range []struct{ format, data string }{
		{">bBhHlLT", "\x01\x02\x03\x04\x05\x06\x07\x08"}, {"!8 b i3", "abcdefghijklmnop"}, {"c99999999", "abc"}, {"c0", "abc"}, {"Bc0", "\x03abcdef"},
		{"s", "abc\x00def"}, {"i32", "abc"}, {"i9I16", "abcdefghijklmnopqrstuvwxyz012345"}, {"!3", ""}, {"i2147483648", "x"}, {"c1c0", "2ab"}, {"fd", "abcdefghijkl"},
		{"!1073741824bi", "abcdefgh"}, {"b\x00z", "a"}, {"c2147483647c2147483647", "a"}, {"xxxx", "abcd"},
	} {
		f.Add(seed.format, seed.data)
	}
	f.Fuzz(func(t *testing.T, format, data string) {
		L := lua.NewState(lua.Options{RegistrySize: 1 << 10, RegistryMaxSize: 1 << 16})
		defer L.Close()
		Open(L, func(int) {})
		L.SetGlobal("format", lua.LString(format))
		L.SetGlobal("data", lua.LString(data))
		err := L.DoString(`
			pcall(struct.size, format)
			local values = {pcall(struct.unpack, format, data)}
			if not values[1] or #values > 200 then return end
			for _, v in ipairs(values) do if v ~= v then return end end
			if format:find('c0') or format:find('c%d*$') then return end -- these take values that unpack has used up
			local ok, packed = pcall(struct.pack, format, unpack(values, 2, #values - 1))
			if not ok then return end
			local again = {pcall(struct.unpack, format, packed)}
			assert(#again == #values, 'other values')
			for i = 2, #values - 1 do assert(again[i] == values[i], 'another value') end`)
		if err != nil {
			t.Fatalf("%q %q: %v", format, data, err)
		}
	})
}
