package commands

import (
	"fmt"
	"strings"
	"testing"

	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// TestJSONMSetIsOneByOne runs JSON.MSET with random triplets of few documents, and compares it with a command
// for each triplet. Where one of these fails, nothing has changed, or the place was there before.
func TestJSONMSetIsOneByOne(t *testing.T) {
	t.Parallel()
	random := drill.Rand(t)
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	w := newHarness(t)
	w.expect("OK", "CONTAINER.SET", "1", "TTL", "3600", "DEADLINE", "end")
	w.expect("OK", "SELECT", "1")
	w.expect("OK", "CONFIG", "SET", "max-value-size", "1024")
	failed, done := 0, 0
	for range drill.Pick(1500, 10_000, 300_000) {
		keys := []string{"{k}1", "{k}2"}
		before := map[string]string{}
		for _, key := range keys {
			w.do(1, "DEL", key, key+"m")
			if random.IntN(6) > 0 {
				before[key] = pick(`{}`, ` {"a":{"b":[1, {"a":2}]} , "ttl":5}`, `{"a":[[],{"a":0}]}`, `{"end":"2030-01-01T00:00:00Z","b":{}}`)
				w.do(1, "DOC.PUT", "1", key, before[key])
				w.do(1, "DOC.PUT", "1", key+"m", before[key])
			}
		}
		args, want := []string{"JSON.MSET"}, "OK"
		var missing []string // errors of elements that were there before
		for range 1 + random.IntN(8) {
			key := pick(keys...)
			path := "$"
			for range 1 + random.IntN(4) {
				path += pick(".a", ".b", ".a", "[0]", "[-1]", ".ttl", ".end", "[*]", "..a")
			}
			if random.IntN(10) == 0 {
				path = "$"
			}
			value := pick("1", `{"a":1}`, `[1,2]`, `{"b":{}}`, `"2031-01-01T00:00:00Z"`, `-5`, strings.Repeat("[", 126)+strings.Repeat("]", 126), `"`+strings.Repeat("x", 400)+`"`)
			args = append(args, key+"m", path, value)
			r := notation(w.do(1, "JSON.MSET", key, path, value))
			if strings.HasPrefix(r, "(error)") {
				if want = r; before[key] != "" && strings.Contains(r, "out of range") || strings.Contains(r, "static") {
					missing = append(missing, r)
				}
				break
			}
		}
		got := notation(w.do(1, args...))
		if len(missing) > 0 && got == "OK" {
			continue
		}
		if got != want {
			t.Fatalf("%q on %q: got %s, want %s", args, before, got, want)
		}
		if want == "OK" {
			done++
		} else {
			failed++
		}
		for _, key := range keys {
			is := notation(w.do(1, "DOC.GET", "1", key+"m"))
			should := notation(w.do(1, "DOC.GET", "1", key))
			if want != "OK" {
				if should = "(nil)"; before[key] != "" {
					should = notation(engine.Bulk(before[key]))
				}
			}
			if is != should {
				t.Fatalf("%q on %q: %s is\n%s\nwant\n%s", args, before, key, is, should)
			}
		}
	}
	if failed == 0 || done == 0 {
		t.Errorf("%d have failed, %d not", failed, done)
	}
}

// TestJSONMSetOfManyPaths: many triplets of one document are within what a command may walk, since they read
// it once.
func TestJSONMSetOfManyPaths(t *testing.T) {
	t.Parallel()
	const n = 30_000
	w := newHarness(t)
	args, members := []string{"JSON.MSET"}, make([]string, n)
	for i := range n {
		members[i] = fmt.Sprintf(`"member-%d":1`, i)
		args = append(args, "k", fmt.Sprintf("$.member-%d", i), "2")
	}
	doc := "{" + strings.Join(members, ",") + "}"
	w.expect("OK", "JSON.SET", "k", "$", doc)
	w.expect("OK", args...)
	w.expect(notation(engine.Bulk(strings.ReplaceAll(doc, ":1", ":2"))), "JSON.GET", "k")
}
