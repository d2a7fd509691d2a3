package cjson

import (
	"strings"
	"testing"

	lua "github.com/yuin/gopher-lua"

	"mayfly/commands/scripts/lualib/libtest"
)

func TestHostileTablesAndTextsEndOverTheLimit(t *testing.T) {
	t.Parallel()
	libtest.CheckBounds(t, openLibrary,
		`cjson.encode_sparse_array(false, 0) cjson.encode({[2^31-1] = 1})`,
		`local t = {} for i = 1, 20 do t = {t, t, t, t, t, t, t, t} end cjson.encode(t)`,
		`local t = {} for i = 1, 20 do t = {a = t, b = t, c = t, d = t, e = t, f = t} end cjson.encode(t)`,
		`local s = string.rep('\0', 1000000) local t = {} for i = 1, 100 do t[i] = s end cjson.encode(t)`,
		`cjson.decode('[' .. string.rep('1,', 600000) .. '1]')`,
		`cjson.decode('[' .. string.rep('{},', 100000) .. '1]')`,
		`cjson.decode('[' .. string.rep('[[[[]]]],', 40000) .. '1]')`,
		`local t = {} for i = 1, 50000 do t[i] = '"' .. i .. '":1' end local s = '{' .. table.concat(t, ',') .. '}' for i = 1, 10 do cjson.decode(s) end`,
		`cjson.decode('"\\n' .. string.rep('\\n', 6000000) .. '"')`,
		`for i = 1, 1e9 do cjson.new() end`,
		`local s = string.rep('x', 1000000) for i = 1, 1e9 do cjson.encode(s) end`,
	)
}

func TestLongWorkAsksWhetherToGoOn(t *testing.T) {
	t.Parallel()
	libtest.CheckInterrupt(t, openLibrary,
		`local s = string.rep(' ', 999999) for i = 1, 1000 do cjson.decode(s .. '1') end`,
		`local s = string.rep('0', 1000000) for i = 1, 1000 do cjson.decode(s) end`,
		`local s = '"' .. string.rep('x', 1000000) .. '"' for i = 1, 1000 do cjson.decode(s) end`,
		`local t = {} for i = 1, 300000 do t[i] = false end t.x = 1 cjson.encode(t)`,
	)
}

func TestSettingsEndWithReset(t *testing.T) {
	t.Parallel()
	L := lua.NewState()
	defer L.Close()
	l := Open(L, func(int) {})
	run := func(text string) lua.LValue {
		t.Helper()
		if err := L.DoString("result = " + text); err != nil {
			t.Fatal(err)
		}
		return L.GetGlobal("result")
	}
	run("cjson.encode_max_depth(5)")
	if got := run("cjson.encode_max_depth()"); got != lua.LNumber(5) {
		t.Errorf("the depth is %v, not 5", got)
	}
	l.Reset()
	if got := run("cjson.encode_max_depth()"); got != lua.LNumber(1000) {
		t.Errorf("after Reset the depth is %v, not 1000", got)
	}
}

// FuzzDecode checks that decode neither panics nor takes memory out of proportion, and that what it reads is what it
// reads of its own text once more.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,2.5,-3e2,"x",true,false,null,{},[]]}`, `"\u0041\ud83d\ude00\n"`, `"\ud83d"`, `[1,`, `{"a":1,}`, "[1]\x00x", "\x00",
		`0x1p4`, `-nan(12)`, `+inf`, `1e400`, `"a`, `[[[[[[[[[[`, `{"":{"":{"":`, `"\u12`, strings.Repeat("[", 1100), "-", "1.e5", `nul`,
		`{"a":{"b":1},"a":[2],"a":3}`, `[[],{},[[{}]]]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		L := lua.NewState(lua.Options{RegistrySize: 1 << 10, RegistryMaxSize: 1 << 16})
		defer L.Close()
		charged := 0
		Open(L, func(n int) { charged += n })
		L.SetGlobal("text", lua.LString(text))
		err := L.DoString(`
			cjson.encode_invalid_numbers(true)
			local ok, value = pcall(cjson.decode, text)
			if not ok then
				assert(type(value) == 'string', 'an error is no text')
				return
			end
			cjson.encode_number_precision(14)
			local once = cjson.encode(value)
			local twice = cjson.encode(cjson.decode(once))
			assert(once == twice, once .. ' is then ' .. twice)`)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if charged > 4096+2000*len(text) {
			t.Errorf("%q charges %d bytes", text, charged)
		}
	})
}
