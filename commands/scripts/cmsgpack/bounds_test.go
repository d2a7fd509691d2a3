package cmsgpack

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"mayfly/commands/scripts/lualib/libtest"
)

func TestHostileTablesAndTextsEndOverTheLimit(t *testing.T) {
	t.Parallel()
	libtest.CheckBounds(t, Open,
		`local t = {} for i = 1, 10 do t[i] = t end cmsgpack.pack(t)`,
		`local t = {} for i = 1, 10 do t['k' .. i] = t end cmsgpack.pack(t)`,
		`local s = string.rep('x', 1000000) local t = {} for i = 1, 100 do t[i] = s end cmsgpack.pack(t)`,
		`cmsgpack.unpack('\221\255\255\255\255' .. string.rep('\1', 5000000))`,
		`cmsgpack.unpack('\221\255\255\255\255' .. string.rep('\144', 1000000))`,
		`cmsgpack.unpack('\221\255\255\255\255' .. string.rep('\129\1\1', 500000))`,
		`for i = 1, 10000 do cmsgpack.unpack('\129\206\0\0\255\255\1') end`,
		`for i = 1, 1e9 do cmsgpack.pack(i) end`,
	)
}

func TestLongWorkAsksWhetherToGoOn(t *testing.T) {
	t.Parallel()
	libtest.CheckInterrupt(t, Open,
		`local t = {} for i = 1, 300000 do t[i] = false end t.x = 1 cmsgpack.pack(t)`,
		`cmsgpack.unpack('\221\255\255\255\255' .. string.rep('\192', 1000000))`,
	)
}

// FuzzUnpack checks that unpack neither panics nor takes memory out of proportion, and that what it reads is what it
// reads of its own text once more.
func FuzzUnpack(f *testing.F) {
	for _, seed := range []string{
		"\x00\x7f\x80\x90\xa0\xc0\xc2\xc3\xff\xe0", "\xcc\xff\xcd\xff\xff\xce\xff\xff\xff\xff\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
		"\xca\x3f\xc0\x00\x00\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a", "\xd9\x05abcde", "\xdb\xff\xff\xff\xffa", "\xdd\xff\xff\xff\xff\x01",
		"\xdf\xff\xff\xff\xff\x01\x01", "\x81\xc0\x01", "\x81\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01\x01", "\xc1", "\x82\x05\x02\x05\xc0",
		strings.Repeat("\x91", 4100), strings.Repeat("\x81\x01", 4100), "\x81\xce\x00\x00\xff\xff\x01", "\x93\x01\xc0\x03", strings.Repeat("\x91", 17) + "0",
		"\x82\x01\x91\x01\x01\x90", "\x81\x91\x01\x02", "\x81\xc0\x91", "\x81\xc0\x91\x01", "\x82\x91\x01\x91\x02\x03",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		L := lua.NewState(lua.Options{RegistrySize: 1 << 10, RegistryMaxSize: 1 << 16})
		defer L.Close()
		Open(L, func(int) {})
		L.SetGlobal("text", lua.LString(text))
		err := L.DoString(`
			local ok, next, value = pcall(cmsgpack.unpack_one, text)
			if not ok then
				assert(type(next) == 'string', 'an error is no text')
				return
			end
			ok, value = pcall(cmsgpack.unpack, cmsgpack.pack(value)) -- tables too deep are nil, and then gone
			if not ok then return end -- a table too deep was a key
			local once = cmsgpack.pack(value)
			local twice = cmsgpack.pack(cmsgpack.unpack(once))
			assert(once == twice, 'packed once and twice differ')`)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
	})
}
