package scripts

import (
	"testing"

	"mayfly/test/drill"
)

const lockRelease = `if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

// constant is a Caller that answers every command with the same bulk string.
type constant struct{ echo }

func (constant) Call([]string) (Value, error) { return Value{Kind: Bulk, Str: "token"}, nil }

func BenchmarkLockRelease(b *testing.B) {
	var c Cache
	s, err := c.Load(lockRelease, true)
	drill.Check(b, err)
	keys, args := []string{"lock:resource"}, []string{"token"}
	b.ReportAllocs()
	for b.Loop() {
		if s, ok := c.Get(s.SHA1()); !ok {
			b.Fatal("lost")
		} else if _, err := Run(s, nil, constant{}, keys, args, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkInstructions(b *testing.B) {
	for name, body := range map[string]string{
		"loop":   `local n = 0 for i = 1, 1000000 do n = n + i % 7 end return n`,
		"fib":    `local function f(n) if n < 2 then return n end return f(n-1) + f(n-2) end return f(22)`,
		"table":  `local t = {} for i = 1, 100000 do t[i] = i end local s = 0 for i = 1, 100000 do s = s + t[i] end return s`,
		"string": `local s = 0 for i = 1, 10000 do s = s + #("key:" .. i .. ":x") end return s`,
		"pairs":  `local t = {} for i = 1, 1000 do t["k" .. i] = i end local s = 0 for j = 1, 50 do for k, v in pairs(t) do s = s + v end end return s`,
	} {
		b.Run(name, func(b *testing.B) {
			s, err := new(Cache).Load(body, true)
			drill.Check(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if v, err := Run(s, nil, constant{}, nil, nil, Limits{}); err != nil || v.Kind == Error {
					b.Fatal(v, err)
				}
			}
		})
	}
}
