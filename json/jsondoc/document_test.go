package jsondoc

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"mayfly/expiry"
	"mayfly/json/jsontext"
	"mayfly/test/drill"
)

const testMaxSize = 1 << 20 // bytes

func nested(levels int) string {
	return strings.Repeat(`{"a":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
}

func TestParseReadsTTL(t *testing.T) {
	t.Parallel()
	tests := []struct {
		json string
		ttl  expiry.TTL
		bad  string // part of the error; "" if the member counts or is absent
	}{
		{`{}`, expiry.Absent, ""},
		{` { "a" : [ 1 , {"ttl":5} ] } `, expiry.Absent, ""},
		{`{"TTL":5,"Ttl":6}`, expiry.Absent, ""},
		{`{"a":"ttl\":5","b":"\"ttl\":7"}`, expiry.Absent, ""},
		{`{"title":1,"xttl":2,"ttlx":3}`, expiry.Absent, ""},
		{`{"ttl":null}`, expiry.Absent, ""},
		{`{"ttl":20}`, 20, ""},
		{`{"ttl":20.0}`, 20, ""},
		{`{"ttl":2e1}`, 20, ""},
		{`{"ttl":-1}`, expiry.Forever, ""},
		{`{"ttl":2147483647}`, expiry.MaxTTL, ""},
		{"{\t\"ttl\"\n:\r5 ,\"a\":1}", 5, ""},
		{`{"\u0074tl":5}`, 5, ""},
		{`{"t\u0074l":5}`, 5, ""},
		{`{"tt\u006C":5}`, 5, ""},
		{`{"tt\u006c":5}`, 5, ""},
		{`{"\\u0074tl":5,"a":"\u0074tl"}`, expiry.Absent, ""},
		{`{"a":{"ttl":1},"b":["ttl",{"ttl":2}],"ttl":9}`, 9, ""},
		{`{"ttl":0}`, expiry.Absent, "invalid ttl 0:"},
		{`{"ttl":-2}`, expiry.Absent, "invalid ttl -2:"},
		{`{"ttl":20.5}`, expiry.Absent, "invalid ttl 20.5:"},
		{`{"ttl":2147483648}`, expiry.Absent, "invalid ttl 2147483648:"},
		{`{"ttl":"20"}`, expiry.Absent, `invalid ttl "20":`},
		{`{"ttl":true}`, expiry.Absent, "invalid ttl true:"},
		{`{"ttl":[]}`, expiry.Absent, "invalid ttl []:"},
		{`{"ttl":{"ttl":5}}`, expiry.Absent, `invalid ttl`},
		{`{"ttl":5,"ttl":5}`, expiry.Absent, "repeated"},
		{`{"ttl":5,"a":0,"\u0074tl":6}`, expiry.Absent, "repeated"},
		{`{"ttl":null,"ttl":null}`, expiry.Absent, "repeated"},
	}
	for _, test := range tests {
		d, err := Parse(test.json, testMaxSize)
		if err != nil {
			t.Errorf("%s: %v", test.json, err)
			continue
		}
		if d.JSON != test.json || d.TTL != test.ttl {
			t.Errorf("%s: got %s with ttl %v, want ttl %v", test.json, d.JSON, d.TTL, test.ttl)
		}
		if (d.TTLErr != nil) != (test.bad != "") || d.TTLErr != nil && !strings.Contains(d.TTLErr.Error(), test.bad) {
			t.Errorf("%s: error %v, want one with %q", test.json, d.TTLErr, test.bad)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	large := `{"a":"` + strings.Repeat("x", testMaxSize) + `"}`
	tests := []struct{ json, want string }{
		{``, "invalid JSON at byte 0"},
		{` `, "invalid JSON at byte 1"},
		{`{`, "invalid JSON at byte 1"},
		{`{"a":1,}`, "invalid JSON at byte 8"},
		{`{'a':1}`, "invalid JSON at byte 2"},
		{`{"a":01}`, "invalid JSON at byte 7"},
		{`{"a":NaN}`, "invalid JSON at byte 6"},
		{"{\"a\":\"\n\"}", "invalid JSON at byte 7"},
		{"{\"a\":\"\x00\"}", "invalid JSON"},
		{`{"a":"\x"}`, "invalid JSON at byte 8"},
		{`{} {}`, "invalid JSON at byte 4"},
		{"\ufeff{}", "invalid JSON at byte 1"},
		{"{\"a\":\"\xff\"}", "not UTF-8 at byte 7"},
		{"{\"a\":\"\xed\xa0\x80\"}", "not UTF-8 at byte 7"}, // a surrogate in UTF-8
		{"{\"\ufffd\":\"\xc0\x80\"}", "not UTF-8 at byte 9"},
		{`[1,2]`, "invalid document [1,2]: legal are JSON objects"},
		{` 5`, "invalid document 5: "},
		{`"{}"`, "invalid document "},
		{`null`, "invalid document null: "},
		{nested(129), "nested deeper than 128 levels at byte 641"},
		{`{"a":` + strings.Repeat("[", 1000000), "nested deeper than 128 levels"},
		{strings.Repeat("[", 129) + strings.Repeat("]", 129), "nested deeper than 128 levels"},
		{large, "document of 1048584 bytes: legal are at most 1048576"},
	}
	for _, test := range tests {
		_, err := Parse(test.json, testMaxSize)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.60q: error %v, want one with %q", test.json, err, test.want)
		}
		if err != nil && (strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > 300) {
			t.Errorf("%.60q: not one readable line: %q", test.json, err)
		}
	}
}

func TestNestingCountsLevelsNotBrackets(t *testing.T) {
	t.Parallel()
	for _, legal := range []string{
		nested(128),
		`{"a":"` + strings.Repeat("[", 1000) + `"}`,
		`{"a":[` + strings.Repeat("[],", 1000) + `1]}`,
		`{"a":"\\\"` + strings.Repeat("{", 1000) + `"}`,
	} {
		if _, err := Parse(legal, testMaxSize); err != nil {
			t.Errorf("%.60q: %v", legal, err)
		}
	}
}

func TestWithTTL(t *testing.T) {
	t.Parallel()
	tests := []struct {
		json string
		ttl  expiry.TTL
		want string
	}{
		{`{}`, 5, `{"ttl":5}`},
		{` { } `, 5, ` {"ttl":5 } `},
		{`{"a":1}`, 5, `{"a":1,"ttl":5}`},
		{`{ "a" : 1 }`, -1, `{ "a" : 1,"ttl":-1 }`},
		{`{"ttl":5}`, 6, `{"ttl":6}`},
		{`{ "ttl" : "x" , "a" : 1.50 }`, 6, `{ "ttl" : 6 , "a" : 1.50 }`},
		{`{"\u0074tl":5}`, 6, `{"\u0074tl":6}`},
		{`{"ttl":1, "a":2, "tt\u006c":3}`, 6, `{"ttl":6, "a":2}`},
		{`{"a":{"ttl":1},"TTL":2}`, 6, `{"a":{"ttl":1},"TTL":2,"ttl":6}`},
		{`{"ttl":[{"ttl":1},"]}"],"a":"}"}`, 6, `{"ttl":6,"a":"}"}`},
		{`{}`, expiry.Absent, `{}`},
		{`{"a":1}`, expiry.Absent, `{"a":1}`},
		{`{"ttl":5}`, expiry.Absent, `{}`},
		{"{\n\t\"ttl\": 5\n}", expiry.Absent, "{\n\t\n}"},
		{`{"ttl":5, "a":1}`, expiry.Absent, `{"a":1}`},
		{`{"a":1, "ttl":5}`, expiry.Absent, `{"a":1}`},
		{`{"a":1, "ttl":5, "b":2}`, expiry.Absent, `{"a":1, "b":2}`},
		{`{"ttl":5,"ttl":6,"a":1,"ttl":7}`, expiry.Absent, `{"a":1}`},
	}
	for _, test := range tests {
		if got := withTTL(test.json, test.ttl); got != test.want {
			t.Errorf("withTTL(%s, %v) = %s, want %s", test.json, test.ttl, got, test.want)
		}
	}
}

func TestWithMeta(t *testing.T) {
	t.Parallel()
	tests := []struct{ json, want string }{
		{`{}`, `{"_ts":1700000000,"_etag":"00ff"}`},
		{`{"a":1}`, `{"a":1,"_ts":1700000000,"_etag":"00ff"}`},
		{`{"_etag":1,"a":1,"_ts":{"_ts":2}}`, `{"_etag":"00ff","a":1,"_ts":1700000000}`},
		{`{"_ts":1,"_ts":2}`, `{"_ts":1700000000,"_etag":"00ff"}`},
	}
	for _, test := range tests {
		if got := WithMeta(test.json, 1700000000999, "00ff"); got != test.want {
			t.Errorf("WithMeta(%s) = %s, want %s", test.json, got, test.want)
		}
	}
}

func TestParseDropsTheServersMembers(t *testing.T) {
	t.Parallel()
	tests := []struct{ json, want string }{
		{`{"_ts":1}`, `{}`},
		{` { "_etag" : "x" } `, ` {  } `},
		{`{"_ts":1,"a":1.50}`, `{"a":1.50}`},
		{`{"a":1, "_ts":1}`, `{"a":1}`},
		{`{ "a" : 1 , "_ts":{"_ts":[1]} , "b":"_ts" }`, `{ "a" : 1 , "b":"_ts" }`},
		{`{"_ts":1,"_ts":2,"_etag":3,"ttl":5,"_etag":4}`, `{"ttl":5}`},
		{`{"\u005fts":1,"_\u0065tag":2,"\u0061":3}`, `{"\u0061":3}`},
		// All these are the user's.
		{`{"o":{"_ts":1},"a":[{"_etag":1}],"_tsx":1,"ts":1,"_TS":1,"_":1,"":1}`, ""},
		{`{"\u005ft":1,"s":"_ts\":"}`, ""},
	}
	for _, test := range tests {
		if test.want == "" {
			test.want = test.json
		}
		d, err := Parse(test.json, testMaxSize)
		if ttl, _ := readTTL(test.json); err != nil || d.JSON != test.want || d.TTL != ttl {
			t.Errorf("%s: got %s with ttl %v, want %s: %v", test.json, d.JSON, d.TTL, test.want, err)
		}
	}
}

var jsonSeeds = []string{
	`{}`, ` { "a" : [1, 2.5e-3, true, null, "x\u00e9\ud83d\ude00"] } `, `{"ttl":20}`, `{"\u0074tl":2e1,"ttl":1}`,
	`{"a":{"ttl":1},"ttl":-1}`, `{"_ts":1,"_etag":"x"}`, `{"\u005fts":1, "a":{"_ts":2} ,"_\u0065tag":"x","_ts":3}`, `[]`, `{"a":1,}`, `{"a":-}`, `{"a":1e}`, `{"a":"\`, `{"a":"\u12"}`,
	"{\"a\":\"\xff\"}", `{"a":01}`, `{"a":.5}`, `{"a":-0}`, `{"":0}`, `{"a" 1}`, `{"a":[}`, `{"a":tru}`, `nul`, "{\"a\":\"\x7f\"}", `{"ttl":5 , "a" : 1 }`,
	`{"ttl":null,"ttl":2}`, `{"a":[{"ttl":1}],"\\ttl":1,"ttl" : {"ttl":5} }`, `{"tt\u006c":-1}`, `[{"ttl":1}]`,
}

// FuzzParse compares Parse with encoding/json: the same verdict on every text, but for texts that are no
// object, not UTF-8 or too deep. The scan and readTTL find the same member ttl. Only root members _ts and
// _etag are dropped.
func FuzzParse(f *testing.F) {
	for _, seed := range jsonSeeds {
		f.Add(seed)
	}
	f.Add(nested(128))
	f.Add(nested(129))
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Parse(text, testMaxSize)
		object := strings.HasPrefix(strings.TrimLeft(text, jsontext.Space), "{")
		want := json.Valid([]byte(text)) && utf8.ValidString(text) && object && len(text) <= testMaxSize
		if err == nil && !want {
			t.Fatalf("accepted %q", text)
		}
		if err == nil {
			all, ttls := rootMembers(t, text)
			kept := slices.DeleteFunc(slices.Clone(all), func(m string) bool {
				return strings.HasPrefix(m, `"_ts":`) || strings.HasPrefix(m, `"_etag":`)
			})
			got, gotTTLs := rootMembers(t, d.JSON)
			if !slices.Equal(got, kept) || gotTTLs != ttls || len(kept) == len(all) && d.JSON != text {
				t.Fatalf("%q became %q: members %q, want %q", text, d.JSON, got, kept)
			}
			if ttl, bad := readTTL(text); d.TTL != ttl || fmt.Sprint(d.TTLErr) != fmt.Sprint(bad) {
				t.Fatalf("%q has ttl %v (%v), walking through it finds %v (%v)", text, d.TTL, d.TTLErr, ttl, bad)
			}
		}
		if err != nil && want && !strings.Contains(err.Error(), "nested deeper") {
			t.Fatalf("refused %q: %v", text, err)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\r\n") {
			t.Fatalf("not one line: %q", err)
		}
	})
}

// FuzzWithTTL compares edits with encoding/json: the member reads as it was set, and all others stay
// unchanged, in the same order.
func FuzzWithTTL(f *testing.F) {
	for i, seed := range jsonSeeds {
		f.Add(seed, int32(i-1))
	}
	f.Fuzz(func(t *testing.T, text string, n int32) {
		if _, err := Parse(text, testMaxSize); err != nil {
			return
		}
		ttl := expiry.TTL(max(n, -1))
		edited := withTTL(text, ttl)
		d, err := Parse(edited, testMaxSize+100)
		if err != nil {
			t.Fatalf("%q became %q: %v", text, edited, err)
		}
		if d.TTL != ttl || d.TTLErr != nil {
			t.Fatalf("%q became %q: ttl %v, error %v; want %v", text, edited, d.TTL, d.TTLErr, ttl)
		}
		before, _ := rootMembers(t, text)
		after, found := rootMembers(t, edited)
		if want := min(max(int64(ttl), int64(-ttl)), 1); int64(found) != want {
			t.Fatalf("%q became %q with %d members ttl", text, edited, found)
		}
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("%q became %q: members %q became %q", text, edited, before, after)
		}
		if ttl == expiry.Absent && withTTL(edited, ttl) != edited {
			t.Fatalf("removing twice changed %q", edited)
		}
		meta := WithMeta(text, 5000, "0f")
		var fields map[string]any
		if err := json.Unmarshal([]byte(meta), &fields); err != nil || fields["_ts"] != 5.0 || fields["_etag"] != "0f" {
			t.Fatalf("%q with meta became %q: %v", text, meta, err)
		}
	})
}

// rootMembers lists an object's members in order, as encoding/json reads them. It leaves out and counts
// those named ttl.
func rootMembers(t *testing.T, object string) (members []string, ttls int) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(object))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		name, err := d.Token()
		drill.Check(t, err)
		var value json.RawMessage
		drill.Check(t, d.Decode(&value))
		if name == TTLMember {
			ttls++
			continue
		}
		members = append(members, fmt.Sprintf("%q:%s", name, value))
	}
	return members, ttls
}

func BenchmarkParse(b *testing.B) {
	plain := `{"id":"order-000123","customer":"c-4711","status":"shipped","total":149.95,"currency":"EUR","items":[{"sku":"A-1","qty":2,"price":19.99},{"sku":"B-7","qty":1,"price":109.97}],"address":{"street":"Hauptstraße 5","city":"Köln","zip":"50667"},"created":"2024-03-01T12:00:00Z"}`
	long := `{"id":123,"customer":"c-00123","total":123.23,"note":"` + strings.Repeat("lorem ipsum ", 19) + `"}`
	for name, text := range map[string]string{
		"members": plain, "members, ttl": withTTL(plain, 30), "string": long, "string, ttl": withTTL(long, 30),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Parse(text, testMaxSize); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkReadTTL measures what rootFacts.readTTL saves Parse: a second pass for the member ttl.
func BenchmarkReadTTL(b *testing.B) {
	text := withTTL(`{"id":123,"customer":"c-00123","total":123.23,"note":"`+strings.Repeat("lorem ipsum ", 19)+`"}`, 30)
	b.Run("facts", func(b *testing.B) {
		for b.Loop() {
			facts, _ := scan(text)
			if ttl, err := facts.readTTL(text); ttl != 30 || err != nil {
				b.Fatal(ttl, err)
			}
		}
	})
	b.Run("second pass", func(b *testing.B) {
		for b.Loop() {
			scan(text)
			if ttl, err := readTTL(text); ttl != 30 || err != nil {
				b.Fatal(ttl, err)
			}
		}
	})
}

// BenchmarkSetMembers sets a member that the object does not have: without a walk, and with one.
func BenchmarkSetMembers(b *testing.B) {
	text := `{"id":123,"customer":"c-00123","total":123.23,"note":"` + strings.Repeat("lorem ipsum ", 19) + `"}`
	for name, text := range map[string]string{"search": text, "walk": `{"ttl":1,` + text[1:]} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				withTTL(text, 30)
			}
		})
	}
}
