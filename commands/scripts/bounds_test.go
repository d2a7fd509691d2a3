package scripts

import (
	"errors"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"mayfly/commands/scripts/lua"
	"mayfly/test/drill"
)

var errTime = errors.New("ERR out of time")

// patience is an Interrupt that ends a script when it has been asked so often.
type patience int

func (*patience) Holds(int64) error { return nil }

func (p *patience) Stop() error {
	if *p--; *p < 0 {
		return errTime
	}
	return nil
}

// peakHeap runs f and returns by how many bytes of live and dead objects the heap grew meanwhile at most.
func peakHeap(f func()) int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	read := func() int64 {
		metrics.Read(sample)
		return int64(sample[0].Value.Uint64())
	}
	runtime.GC()
	before := read()
	stop, peak := make(chan struct{}), make(chan int64)
	go func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for most := int64(0); ; {
			most = max(most, read())
			select {
			case <-tick.C:
			case <-stop:
				peak <- most
				return
			}
		}
	}()
	f()
	close(stop)
	return max(<-peak-before, 0)
}

// Hostile scripts, by what they try to exceed.
var (
	endless = []string{
		`local t, a = {}, {} for i = 1, 3e4 do t["k" .. i] = 1 end for k in pairs(t) do t[k] = nil end for i = 1, 1e4 do a[i] = t end while true do cjson.encode(a) end`,
		`local t, a = {}, {} for i = 1, 3e4 do t["k" .. i] = 1 end for k in pairs(t) do t[k] = nil end for i = 1, 1e4 do a[i] = t end while true do cmsgpack.pack(a) end`,
		`while true do end`,
		`repeat until false`,
		`for i = 1, 1/0 do end`,
		`local function f() return f() end f()`,
		`while true do pcall(function() while true do end end) end`,
		`while true do pcall(error, "x") end`,
		`while true do xpcall(function() error("x") end, function() while true do end end) end`,
		`local co = coroutine.wrap(function() while true do coroutine.yield() end end) while true do co() end`,
		`local co = coroutine.create(function() while true do end end) while true do coroutine.resume(co) end`,
		`while true do pcall(coroutine.wrap(function() while true do end end)) end`,
		`for _ in function() return 1 end do end`,
		`setmetatable({}, {__index = function(t, k) while true do end end}).x = {} local t = setmetatable({}, {__index = function(t, k) while true do end end}) return t.x`,
		`tostring(setmetatable({}, {__tostring = function() while true do end end}))`,
		`local t = {} for i = 1, 100 do t[i] = i end table.sort(t, function() while true do end end)`,
		`local t = {} for i = 1, 1000 do t[i] = i end while true do pcall(table.sort, t, function() return true end) end`,
		`while true do local t = {} for i = 1, 1e5 do t[i] = 1e5 - i end table.sort(t) end`,
		`string.find(string.rep("a", 5000), ".-.-.-.-.-.-.-.-b")`,
		`string.match(string.rep("a", 5000), string.rep("a*", 20) .. "b")`,
		`string.gsub(string.rep("a", 5000), "(a*a*a*a*a*a*)*b", "")`,
		`while true do string.find(string.rep("a", 100000), string.rep("a?", 5000) .. string.rep("a", 5000)) end`,
		`for x in string.gmatch(string.rep("a", 20000), ".-.-.-.-b") do end`,
		`while true do string.find(string.rep("(", 100000), "%b()") end`,
		`string.rep("a", 1e5):find("[" .. string.rep("b", 1e5) .. "]")  while true do end`,
		`while true do string.rep("x", 1000000) end`,
		`while true do string.format("%99d", 1) end`,
		`local t = {} for i = 1, 1e5 do t[i] = "x" end while true do table.concat(t) end`,
		`local t = {} for i = 1, 7000 do t[i] = i end while true do unpack(t) end`,
		`local s = string.rep("x", 4e6) local u = string.rep("x", 4e6) while true do local a = s == u end`,
		`local s = string.rep("x", 4e6) local t = {} while true do local a = t[s] end`,
		`local t = {} for i = 1, 1e5 do t[i] = i end while true do table.insert(t, 1, 1) table.remove(t, 1) end`,
		`local t = {} for i = 1, 1e5 do t[i] = i end for i = 1, 1e5 do t[i] = nil end while true do next(t) end`,
		`while true do loadstring("return 1") end`,
		`while true do redis.call("get", "x") end`,
		`while true do redis.pcall() end`,
		`while true do redis.sha1hex("x") end`,
		`local t = {} for i = 1, 1e4 do t[i] = i end while true do cjson.encode(t) end`,
		`local s = "[" .. string.rep("1,", 1e5) .. "1]" while true do cjson.decode(s) end`,
		`while true do cmsgpack.unpack(cmsgpack.pack({1, 2, 3})) end`,
		`while true do struct.pack("i4", 1) end`,
		`while true do bit.band(1, 2) end`,
		`while true do math.random() end`,
		`while true do tostring({}) end`,
		`while true do local a = {} end`,
		`while true do setmetatable({}, {}) end`,
		`local t = setmetatable({}, {__newindex = function(t, k, v) end}) while true do t.x = 1 end`,
		`table.foreach(setmetatable({1}, {}), function() while true do end end)`,
		`load(function() return " " end)`,
		`while true do collectgarbage() end`,
		`while true do for k in pairs(_G) do end end`,
		`for k in next, {1, 2, 3} do while true do end end`,
	}
	greedy = []string{
		`local s = ("x"):rep(1e6) for i = 1, 1e9 do loadstring("", i .. s) end`,
		`local s, t = ("x"):rep(1e6), {} for i = 1, 1e9 do t[i] = redis.error_reply(s) end`,
		`local s, t = ("x"):rep(1e6), {} for i = 1, 1e9 do t[i] = select(2, pcall(function() error(s) end)) end`,
		`local s, t = ("x"):rep(1e6), {} for i = 1, 1e9 do t[i] = select(2, pcall(function() assert(false, s) end)) end`,
		`local s, t = ("x"):rep(1e6), {} for i = 1, 1e9 do t[i] = select(2, pcall(coroutine.wrap(function() error(s) end))) end`,
		`local s, t = ("x"):rep(1e6), {} for i = 1, 1e9 do t[i] = select(2, pcall(cjson.encode_invalid_numbers, s)) end`,
		`local s, c, t = ("x"):rep(12e6), {}, {} for i = 1, 7000 do c[i] = 65 end for i = 1, 1e9 do t[i] = string.char(unpack(c)) end`,
		`return string.rep("x", 1e9)`,
		`return string.rep(string.rep("x", 1e4), 1e9)`,
		`local s = "x" while true do s = s .. s end`,
		`local s = "x" while true do s = s .. s .. s .. s end`,
		`local t = {} while true do t[#t + 1] = 1 end`,
		`local t = {} while true do t[#t + 1] = {} end`,
		`local t = {} while true do t[#t + 1] = "x" .. #t end`,
		`local t = {} local i = 0 while true do i = i + 1 t["k" .. i] = i end`,
		`local t = {} local i = 0 while true do i = i + 1 t[-i] = i end`,
		`local t = {} local i = 0 while true do i = i + 1 t[i * 1.5] = i end`,
		`local t = {} while true do t[{}] = true end`,
		`local t = {} while true do t = {t} end`,
		`local t = {} while true do t = {t, t, t, t} end`,
		`local t = {} while true do t[#t + 1] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10} end`,
		`local t = {} while true do t[#t + 1] = {a = 1, b = 2} end`,
		`local t = {} while true do t[#t + 1] = function() return t end end`,
		`local f = function() end while true do local g = f f = function() return g end end`,
		`local t = {} while true do t[#t + 1] = coroutine.create(function() end) end`,
		`local t = {} while true do local co = coroutine.create(function() coroutine.yield() end) coroutine.resume(co) t[#t + 1] = co end`,
		`local function f() local co = coroutine.wrap(f) co() end pcall(f) local t = {} while true do t[#t + 1] = {} end`,
		`local t = {} while true do t[#t + 1] = string.gmatch("x", "y") end`,
		`local t = {} while true do t[#t + 1] = string.gmatch(string.rep("x", 10000), "y") end`,
		`local t = {} while true do t[#t + 1] = string.format("%99d", #t) end`,
		`local t = {} for i = 1, 1000 do t[i] = string.rep("x", 1000) end while true do t[#t + 1] = table.concat(t) end`,
		`local s = "x" while true do s = string.gsub(s, "x", "xxxx") end`,
		`local s = "x" while true do s = string.gsub(s, ".", "%0%0%0%0%0%0%0%0") end`,
		`local s = "x" while true do s = s:upper() .. s:lower() .. s:reverse() end`,
		`local t = {} while true do table.insert(t, 1) end`,
		`local t = {} while true do rawset(t, #t + 1, {}) end`,
		`local t = {} while true do t[#t + 1] = {unpack({}, 1, 200)} end`,
		`local t = {} while true do t[#t + 1] = {pcall(error, {})} end`,
		`local t = {} while true do t[#t + 1] = loadstring("return " .. #t) end`,
		`local t = {} while true do t[#t + 1] = cjson.decode("[1,2,3,[4,{}]]") end`,
		`local t = {} while true do t[#t + 1] = cmsgpack.pack(t) end`,
		`local t = {} while true do t[#t + 1] = redis.pcall("get", "x") .. #t end`,
		`local t = {} while true do t[#t + 1] = redis.error_reply("x") end`,
		`local t = {} while true do t[#t + 1] = redis.sha1hex(#t) end`,
		`local t = {} while true do t[#t + 1] = tostring({}) end`,
		`local t = {} while true do t[#t + 1] = cjson.new() end`,
		`local t = {} t[60000000] = 1 t[50000000] = 1 t[1e15] = 1 while true do t[#t + 1] = {} end`,
		`local t = {} while true do local u = {} u[60000] = 1 t[#t + 1] = u end`,
		`local t = setmetatable({}, {__concat = function(a, b) return a end}) local s = {} while true do s[#s + 1] = {t .. "x"} end`,
		`local t = {} pcall(function() while true do t[#t + 1] = {} end end) while true do t[#t + 1] = {} end`,
		`while true do pcall(string.rep, "x", 1e9) end`,
		`while true do local a = {} for i = 1, 1e7 do a[i] = i end end`,
		`local x = {} for i = 1, 1e9 do local y = i x[i] = function() y = y + 1 return y end end`,
		`local t = {} for i = 1, 1e7 do t[i] = 1.5 * i end return t`,
	}
	// slow take long before they reach a bound of memory.
	slow = []string{
		`local s = "" while true do s = s .. string.rep("y", 1000) end`,
		`local t = {} while true do t[#t + 1] = string.rep("x", 1e6):sub(1, 1) end`,
		`local t = {} while true do t[#t + 1] = string.match(string.rep("x", 1e5), "x.") .. #t end`,
		`local i = 0 local function f(...) i = i + 1 return f(i, ...) end f()`,
		`local function f(...) return f(1, ...) end f()`,
		`local m = {} m.__call = function(self, ...) return self(...) end setmetatable(m, m) return m()`,
		`local co = coroutine.create(function() local function f(...) return f(1, ...) end f() end) return coroutine.resume(co)`,
	}
	deep = []string{
		`local function f() return 1 + f() end return f()`,
		`local function f() local a, b, c, d, e = 1, 2, 3, 4, 5 return f() + a + b + c + d + e end return f()`,
		`local function f() f() end f()`,
		`local function f() return pcall(f) end return f()`,
		`local function f() return (pcall(f)) end return f()`,
		`local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k + 1] end return t[1]`,
		`local m = {} m.__index = m setmetatable(m, m) return m.x`,
		`local t = {} for i = 1, 1000 do t = setmetatable({}, {__index = t}) end return t.x`,
		`local m = {} m.__concat = function(a, b) return a .. b end local t = setmetatable({}, m) return t .. "x"`,
		`local m = {} m.__tostring = function(t) return tostring(t) end return tostring(setmetatable({}, m))`,
		`local m = {} m.__eq = function(a, b) return a == b end return setmetatable({}, m) == setmetatable({}, m)`,
		`local m = {} m.__lt = function(a, b) return a < b end return setmetatable({}, m) < setmetatable({}, m)`,
		`local m = {} m.__call = m setmetatable(m, m) return m()`,
		`local m = {} m.__newindex = function(t, k, v) t[k] = v end setmetatable(m, m) m.x = 1`,
		`local m = {} m.__add = function(a, b) return a + b end return setmetatable({}, m) + 1`,
		`local m = {} m.__unm = function(a) return -a end return -setmetatable({}, m)`,
		`local m = {} m.__len = function(a) return #a end return #setmetatable({}, m)`,
		`local function f() return coroutine.wrap(f)() end return f()`,
		`local function f() return coroutine.resume(coroutine.create(f)) end return f()`,
		`local function f() table.sort({1, 2, 3}, f) end f()`,
		`local function f() return string.gsub("x", "x", f) end return f()`,
		`local function f() for k in f do end end f()`,
		`local t = {} t[1] = t return t`,
		`local t = {} for i = 1, 100000 do t = {t} end return t`,
		`local t = {1} for i = 1, 40 do t = {t, t} end return t`,
		`local t = {1} for i = 1, 40 do t = {map = {a = t, b = t}} end return t`,
		`local t = {} t.map = {a = t} return t`,
		`local t = {} t[1] = t return cjson.encode(t)`,
		`local t = {} t[1] = t return cmsgpack.pack(t)`,
		`return cjson.decode(string.rep("[", 1e5))`,
		`error(setmetatable({}, {__tostring = function() error("x") end}))`,
		`error(setmetatable({}, {__index = function(t, k) return t[k] end}))`,
		`local e = {} e.err = e error(e)`,
		`return unpack({}, 1, 1e8)`,
		`return unpack({}, -1e9, 1e9)`,
		`return string.byte(string.rep("x", 1e5), 1, -1)`,
		`return string.char(unpack({}, 1, 7999))`,
		`return select(-1e15, 1)`,
		`return select(1e15, 1)`,
		`return table.concat({}, "x", 1, 2e9)`,
		`return table.concat({}, "x", -2e9, 2e9)`,
		`return string.sub("x", -1e308, 1e308)`,
		`return string.rep("", 1e9)`,
		`return string.format(string.rep("%d", 10000), 1)`,
		`return string.format("%" .. string.rep("0", 10000) .. "d", 1)`,
		`return string.format("%99999d", 1)`,
		`return string.format("%.99999f", 1)`,
		`return string.find("x", string.rep("(", 100))`,
		`return string.find("x", string.rep("(x", 40))`,
		`return string.find("x", string.rep("x?", 1e5))`,
		`return string.find(string.rep("x", 1e5), string.rep("x?", 1e5))`,
		`return string.gsub("x", "x", string.rep("%0", 1e5))`,
		`return math.random(-2^31, 2^31 - 1)`,
		`return math.ldexp(1, 1e300)`,
		`return math.fmod(1e308, 1e-308)`,
		`return redis.call(unpack({}, 1, 7000))`,
		`return redis.call("x", string.rep("y", 1e7))`,
		`return redis.setresp(1/0)`,
		`return redis.log(1/0, "x")`,
		`return collectgarbage(string.rep("x", 1e5))`,
		`return loadstring(string.rep("(", 1e5))`,
		`return loadstring("return " .. string.rep("{", 1e5))`,
		`return loadstring("return " .. string.rep("-", 1e5) .. "1")`,
		`return loadstring("return " .. string.rep("not ", 1e5) .. "1")`,
		`return loadstring("return 1" .. string.rep("+1", 1e5))`,
		`return loadstring("return 1" .. string.rep("..1", 1e5))`,
		`return loadstring("return 1" .. string.rep("^1", 1e5))`,
		`return loadstring("return a" .. string.rep(".a", 1e5))`,
		`return loadstring("return a" .. string.rep("()", 1e5))`,
		`return loadstring("return 1 " .. string.rep("and 1 ", 1e5))`,
		`return loadstring(string.rep("if x then ", 1e5))`,
		`return loadstring("if x then " .. string.rep("elseif x then ", 1e5) .. "end")`,
		`return loadstring(string.rep("do ", 1e5))`,
		`return loadstring(string.rep("function f() ", 1e5))`,
		`return loadstring("local a" .. string.rep(",a", 300))`,
		`return loadstring("return {" .. string.rep("1,", 1e5) .. "}")`,
		`return loadstring("f(" .. string.rep("1,", 300) .. "1)")`,
		`return loadstring("local x = " .. string.rep("[", 1e5))`,
		`return loadstring("--[" .. string.rep("=", 1e5) .. "[")`,
		`local s = {} for i = 1, 300 do s[i] = "local a" .. i .. " = 1 " end return loadstring(table.concat(s))`,
		`local s = {} for i = 1, 100 do s[i] = "local a" .. i .. " = 1 " end local b = {} for i = 1, 100 do b[i] = "a" .. i end return loadstring(table.concat(s) .. "return function() return " .. table.concat(b, "+") .. " end")`,
		`local s = {} for i = 1, 300000 do s[i] = "x = " .. i .. " " end return loadstring(table.concat(s))`,
		`local co co = coroutine.create(function() coroutine.resume(co) coroutine.yield(coroutine.resume(co)) end) coroutine.resume(co) coroutine.resume(co) return coroutine.resume(co)`,
		`local co = coroutine.wrap(function() return pcall(coroutine.wrap(function() error({}) end)) end) return co()`,
		`return coroutine.resume(coroutine.create(function(...) return ... end), unpack({}, 1, 7000))`,
		`local co = coroutine.create(function() local function f() return 1 + f() end f() end) return coroutine.resume(co)`,
	}
)

// libraries are hostile scripts for Redis' libraries: what they take is bounded, and what takes long asks
// whether to go on.
var (
	hostileLibraries = []string{
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
		`local t = {} for i = 1, 10 do t[i] = t end cmsgpack.pack(t)`,
		`local t = {} for i = 1, 10 do t['k' .. i] = t end cmsgpack.pack(t)`,
		`local s = string.rep('x', 1000000) local t = {} for i = 1, 100 do t[i] = s end cmsgpack.pack(t)`,
		`cmsgpack.unpack('\221\255\255\255\255' .. string.rep('\1', 5000000))`,
		`cmsgpack.unpack('\221\255\255\255\255' .. string.rep('\144', 1000000))`,
		`cmsgpack.unpack('\221\255\255\255\255' .. string.rep('\129\1\1', 500000))`,
		`for i = 1, 10000 do cmsgpack.unpack('\129\206\0\0\255\255\1') end`,
		`for i = 1, 1e9 do cmsgpack.pack(i) end`,
		`struct.pack(string.rep('x', 50000000))`,
		`local s = string.rep('x', 1000000) for i = 1, 1000 do struct.pack('sc0', s, s) end`,
		`for i = 1, 1e9 do struct.unpack('bbbb', 'abcd') end`,
	}
	longLibraries = []string{
		`local s = string.rep(' ', 999999) for i = 1, 1000 do cjson.decode(s .. '1') end`,
		`local s = string.rep('0', 1000000) for i = 1, 1000 do cjson.decode(s) end`,
		`local s = '"' .. string.rep('x', 1000000) .. '"' for i = 1, 1000 do cjson.decode(s) end`,
		`local t = {} for i = 1, 300000 do t[i] = false end t.x = 1 cjson.encode(t)`,
		`local t = {} for i = 1, 300000 do t[i] = false end t.x = 1 cmsgpack.pack(t)`,
		`cmsgpack.unpack('\221\255\255\255\255' .. string.rep('\192', 1000000))`,
		`local f = string.rep(' ', 100000) for i = 1, 1000 do struct.size(f) end`,
	}
)

// TestBounds shows that hostile scripts end with bounded work, memory and stack. What is not bounded takes
// minutes.
func TestBounds(t *testing.T) { // alone: it measures the heap
	const enough = 16 << 20 // for scripts that are to end otherwise
	little := drill.Pick[int64](4<<20, 4<<20, enough)
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	for _, tt := range []struct {
		name    string
		scripts []string
		asks    patience
		memory  int64
		ok      func(v Value, err error) bool
	}{
		{"endless", endless, 20, enough, func(_ Value, err error) bool { return err == errTime }},
		{"greedy", greedy, 1 << 20, little, func(_ Value, err error) bool {
			var memory *MemoryError
			return errors.As(err, &memory)
		}},
		{"slow", slow, 300, little, func(_ Value, err error) bool {
			var memory *MemoryError
			return err == errTime || errors.As(err, &memory)
		}},
		{"deep", deep, 1 << 20, enough, func(_ Value, err error) bool {
			var memory *MemoryError
			var result *ResultError
			var arg *ArgError
			return err == nil || errors.As(err, &memory) || errors.As(err, &result) || errors.As(err, &arg)
		}},
		{"libraries", hostileLibraries, 100, little, func(_ Value, err error) bool {
			var memory *MemoryError
			return err == nil || err == errTime || errors.As(err, &memory)
		}},
		{"long libraries", longLibraries, 0, enough, func(_ Value, err error) bool { return err == errTime }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for i, body := range tt.scripts {
				if i%drill.Pick(12, 4, 1) != 0 {
					continue
				}
				s, err := new(Cache).Load(body, false)
				if err != nil {
					t.Errorf("%s: %v", body, err)
					continue
				}
				var v Value
				asks := tt.asks
				peak := peakHeap(func() { v, err = Run(s, &asks, constant{}, nil, nil, Limits{Memory: tt.memory}) })
				if !tt.ok(v, err) {
					t.Errorf("%s: got %.100s, %v", body, v.text(), err)
				}
				if peak > 4*tt.memory+16<<20 {
					t.Errorf("%s: the heap grew by %d MB", body, peak>>20)
				}
				if testing.Verbose() {
					t.Logf("%8d asks %4d MB %.60s: %.60s %v", tt.asks-asks, peak>>20, body, v.text(), err)
				}
			}
		})
	}
}

// What reads a long string counts it as work.
func TestLongStringsAreWork(t *testing.T) {
	t.Parallel()
	for _, f := range []string{"redis.set_repl(s)", "redis.setresp(s)", "redis.log(s, '')", "redis.call('SET', 'k', s)", "cjson.decode(n)", "cmsgpack.unpack(m)"} {
		body := `local s = string.rep('x', 100000) local n, m = 'nan(' .. s, '\220\39\16' .. string.rep('\192', 10000) for i = 1, 1000 do pcall(function() ` + f + ` end) end`
		s, err := new(Cache).Load(body, false)
		drill.Check(t, err)
		asks := patience(40)
		if v, err := Run(s, &asks, constant{}, nil, nil, Limits{}); err != errTime {
			t.Errorf("%s: got %.100s, %v", f, v.text(), err)
		}
	}
}

// TestCompileBounds shows what the compiler refuses.
func TestCompileBounds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ body, want string }{
		{strings.Repeat(" ", lua.MaxBody+1), "script is larger than 2097152 bytes"},
		{"return " + strings.Repeat("(", 1000), "user_script:1: chunk has too many syntax levels"},
		{"return 1" + strings.Repeat("+1", 100_000), "user_script:1: chunk has too many syntax levels"},
		{"return a" + strings.Repeat(".a", 100_000), "user_script:1: chunk has too many syntax levels"},
		{strings.Repeat("local a ", 201), "user_script:1: main function has more than 200 local variables"},
		{"local t = {" + strings.Repeat("{", 300), "user_script:1: chunk has too many syntax levels"},
		{"f(" + strings.Repeat("1,", 300) + "1)", "user_script:1: function or expression too complex"},
	} {
		want := "ERR Error compiling script (new function): " + tt.want
		if _, err := new(Cache).Load(tt.body, false); err == nil || err.Error() != want {
			t.Errorf("%.40s: got %v, want %s", tt.body, err, want)
		}
	}
}

// TestNoTrace shows that a script finds nothing of the one before it.
func TestNoTrace(t *testing.T) {
	t.Parallel()
	var c Cache
	run := func(body string) Value {
		s, err := c.Load(body, false)
		drill.Check(t, err)
		v, err := Run(s, nil, constant{}, []string{"k"}, []string{"a"}, Limits{})
		drill.Check(t, err)
		return v
	}
	want := run(`return tostring(#KEYS) .. ARGV[1]`)
	for _, body := range []string{
		`KEYS[1] = "z" KEYS[2] = "y" ARGV = nil`, `rawset(_G, "x", 1)`, `cjson.encode_max_depth(1)`, `redis.setresp(3)`,
		`getmetatable("").__index = nil`, `math.randomseed(1)`, `error(KEYS)`, `local function f() return 1 + f() end f()`,
		`coroutine.wrap(function() error("x") end)()`, `pcall(coroutine.wrap(function() coroutine.yield() end))`,
		`loadstring("x = 1")()`, `for k in pairs(_G) do pcall(rawset, _G, k, nil) end`,
		`for k, v in pairs(_G) do if type(v) == "table" then for l in pairs(v) do pcall(rawset, v, l, nil) pcall(function() v[l] = nil end) end end end`,
		`for k, v in pairs(_G) do if type(v) == "table" and k ~= "KEYS" and k ~= "ARGV" then pcall(table.insert, v, 1) pcall(table.remove, v) pcall(table.sort, v) pcall(setmetatable, v, {}) end end`,
	} {
		run(body)
		if got := run(`return tostring(#KEYS) .. ARGV[1]`); got.text() != want.text() {
			t.Errorf("after %s: got %s, want %s", body, got.text(), want.text())
		}
		if got := run(`return {cjson.encode({{{1}}}), ("x"):rep(2), tostring(rawget(_G, "x")), false}`).text(); got != `[bulk "[[[1]]]", bulk "xx", bulk "nil", nil]` {
			t.Errorf("after %s: got %s", body, got)
		}
	}
}

// TestCallEndsScript shows that an error of the Caller ends a script past its pcalls.
func TestCallEndsScript(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`redis.call("x")`, `pcall(redis.call, "x") return 1`, `redis.pcall("x") return 1`,
		`xpcall(function() redis.call("x") end, function() return 1 end) return 1`,
		`coroutine.resume(coroutine.create(function() redis.call("x") end)) return 1`,
		`pcall(coroutine.wrap(function() pcall(redis.call, "x") end)) return 1`,
		`pcall(string.gsub, "x", "x", function() redis.call("x") end) return 1`,
		`pcall(table.sort, {1, 2}, function() redis.call("x") end) return 1`,
		`return tostring(setmetatable({}, {__tostring = function() redis.call("x") end}))`,
	} {
		s, err := new(Cache).Load(body, false)
		drill.Check(t, err)
		if v, err := Run(s, nil, ending{}, nil, nil, Limits{}); err != errTime {
			t.Errorf("%s: got %s, %v", body, v.text(), err)
		}
	}
}

type ending struct{ echo }

func (ending) Call([]string) (Value, error) { return Value{}, errTime }
