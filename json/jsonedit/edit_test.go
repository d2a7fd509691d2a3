package jsonedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"mayfly/json/jsonpath"
	"mayfly/test/drill"
)

// spans returns the spans of a path's matches.
func spans(t testing.TB, path, doc string) []jsonpath.Span {
	t.Helper()
	p, err := jsonpath.Parse(path)
	drill.Check(t, err)
	budget := jsonpath.BudgetOf(doc)
	found, _, err := p.Find(&budget, nil, doc)
	drill.Check(t, err)
	return found
}

func TestTransform(t *testing.T) {
	t.Parallel()
	mark := func(i int, value string) (string, error) { return fmt.Sprintf("<%s>", value), nil }
	for _, tt := range []struct{ path, doc, want string }{
		{"$", `[1]`, "<[1]>"},
		{"$.a", `{"a": 1 }`, `{"a": <1> }`},
		{"$.*", `{"a":1, "b":[2]}`, `{"a":<1>, "b":<[2]>}`},
		{"$..*", `{"a":[1,[2]],"b":{"c":3}}`, `{"a":<[<1>,<[<2>]>]>,"b":<{"c":<3>}>}`},
		{"$.x", `{"a":1}`, `{"a":1}`},
		{"$[1,0]", `[1,2,3]`, `[<1>,<2>,3]`},
	} {
		if got, err := Transform(tt.doc, spans(t, tt.path, tt.doc), mark); err != nil || got != tt.want {
			t.Errorf("%s in %s: %s, %v", tt.path, tt.doc, got, err)
		}
	}
	var order []string
	if _, err := Transform(`[[1],[2,[3]]]`, spans(t, "$..*", `[[1],[2,[3]]]`), func(_ int, v string) (string, error) {
		order = append(order, v)
		return v, nil
	}); err != nil || strings.Join(order, " ") != "3 [3] 2 [2,[3]] 1 [1]" {
		t.Errorf("the order is %q, %v", order, err)
	}
	stop := errors.New("stop")
	for _, path := range []string{"$", "$..*"} {
		if _, err := Transform(`[1,[2]]`, spans(t, path, `[1,[2]]`), func(int, string) (string, error) { return "", stop }); err != stop {
			t.Errorf("%s: %v", path, err)
		}
	}
	// Many spans take no longer than their number asks for.
	wide := "[" + strings.Repeat("1,", 200000) + "1]"
	if got, err := Transform(wide, spans(t, "$[*]", wide), func(int, string) (string, error) { return "2", nil }); err != nil || got != strings.ReplaceAll(wide, "1", "2") {
		t.Errorf("%.20s, %v", got, err)
	}
}

func TestDelete(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path, doc, want string
		n               int
	}{
		{"$", `{"a":1}`, "", 1},
		{"$", ` 5 `, "", 1},
		{"$.a", `{"a":1}`, "{}", 1},
		{"$.a", `{ "a" : 1 }`, "{  }", 1},
		{"$.a", `{"a":1, "b":2}`, `{"b":2}`, 1},
		{"$.b", `{"a":1, "b" : 2 }`, `{"a":1 }`, 1},
		{"$.b", `{"a":1,"b":2,"c":3}`, `{"a":1,"c":3}`, 1},
		{"$['a','b']", `{"a":1,"b":2,"c":3}`, `{"c":3}`, 2},
		{"$['a','c']", `{"a":1,"b":2,"c":3}`, `{"b":2}`, 2},
		{"$.*", `{"a":1 , "b":2}`, "{}", 2},
		{"$[0,2,3]", `[1, 2, 3, 4]`, "[2]", 3},
		{"$[::2]", `[1,2,3,4,5]`, "[2,4]", 3},
		{"$..a", `{"a":{"a":1},"b":{"a":2}}`, `{"b":{}}`, 2},
		{"$..*", `[[1],[2]]`, "[]", 2},
		{`$["a\"b\\"]`, `{"x":1,"a\"b\\":2}`, `{"x":1}`, 1},
		{"$.x", `{"a":1}`, `{"a":1}`, 0},
	} {
		if got, n := Delete(tt.doc, spans(t, tt.path, tt.doc)); got != tt.want || n != tt.n {
			t.Errorf("%s in %s: %s, %d", tt.path, tt.doc, got, n)
		}
	}
}

func TestAddMember(t *testing.T) {
	t.Parallel()
	for _, tt := range [][3]string{
		{`{}`, "a", `{"a":1}`},
		{`{ }`, "a", `{"a":1 }`},
		{`{"b":2 }`, `a"`, `{"b":2,"a\"":1 }`},
	} {
		if got := AddMember(tt[0], tt[1], "1"); got != tt[2] {
			t.Errorf("%v: %s", tt, got)
		}
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ a, b, sum, product string }{
		{"1", "2", "3", "2"},
		{"-1", "1", "0", "-1"},
		{"1.5", "0.5", "2.0", "0.75"},
		{"2", "0.5", "2.5", "1.0"},
		{"1e2", "1", "101.0", "100.0"},
		{"9223372036854775807", "1", "", "9223372036854775807"},
		{"9223372036854775807", "-1", "9223372036854775806", "-9223372036854775807"},
		{"-9223372036854775808", "-1", "", ""},
		{"-9223372036854775808", "1", "-9223372036854775807", "-9223372036854775808"},
		{"4611686018427387904", "-2", "4611686018427387902", "-9223372036854775808"},
		{"4611686018427387904", "2", "4611686018427387906", ""},
		{"1e308", "1e308", "", ""},
		{"1e16", "0.0", "1e16", "0.0"},
		{"1e15", "0.0", "1000000000000000.0", "0.0"},
		{"0.00001", "0.0", "0.00001", "0.0"},
		{"0.000001", "0.0", "1e-6", "0.0"},
		{"0.1", "0.2", "0.30000000000000004", "0.020000000000000004"},
	} {
		for what, want := range map[string]string{"sum": tt.sum, "product": tt.product} {
			f := Add
			if what == "product" {
				f = Multiply
			}
			if got, err := f(ReadNumber(tt.a), ReadNumber(tt.b)); got != want || (err != nil) != (want == "") || err != nil && !strings.Contains(err.Error(), "the "+what+" of "+tt.a) {
				t.Errorf("%s of %s and %s: %s, %v", what, tt.a, tt.b, got, err)
			}
		}
	}
	r := drill.Rand(t)
	for range drill.Pick(2000, 20_000, 1_000_000) {
		a, b := int64(r.Uint64()>>r.IntN(64)), int64(r.Uint64()>>r.IntN(64))
		if r.IntN(2) == 0 {
			a = -a
		}
		want := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
		got, err := Multiply(ReadNumber(fmt.Sprint(a)), ReadNumber(fmt.Sprint(b)))
		if want.IsInt64() != (err == nil) || err == nil && got != want.String() {
			t.Fatalf("%d * %d: %s, %v", a, b, got, err)
		}
	}
}

func TestArrays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		array string
		index int
		want  string
		n     int
		ok    bool
	}{
		{"[]", 0, "[8,9]", 2, true},
		{"[ ]", -1, "[ ]", 0, false},
		{"[1, 2]", 0, "[8,9,1, 2]", 4, true},
		{"[1, 2 ]", 2, "[1, 2,8,9 ]", 4, true},
		{"[1, 2]", -1, "[1, 8,9,2]", 4, true},
		{"[1,2]", 3, "[1,2]", 2, false},
		{"[1,2]", -3, "[1,2]", 2, false},
	} {
		if got, n, ok := Insert(tt.array, tt.index, []string{"8", "9"}); got != tt.want || n != tt.n || ok != tt.ok {
			t.Errorf("Insert at %d of %s: %s, %d, %v", tt.index, tt.array, got, n, ok)
		}
	}
	for _, tt := range []struct {
		array        string
		index        int
		want, popped string
	}{
		{"[]", -1, "[]", ""},
		{"[1]", 5, "[]", "1"},
		{"[1, [2]]", -1, "[1]", "[2]"},
		{"[1, 2,3]", 0, "[2,3]", "1"},
		{"[1, 2,3]", 1, "[1,3]", "2"},
		{"[1,2,3]", -9, "[2,3]", "1"},
		{"[1,2,3]", 9, "[1,2]", "3"},
	} {
		if got, popped := Pop(tt.array, tt.index); got != tt.want || popped != tt.popped {
			t.Errorf("Pop %d of %s: %s, %s", tt.index, tt.array, got, popped)
		}
	}
	for _, tt := range []struct {
		start, stop int
		want        string
	}{{0, -1, "[0, 1,2,3]"}, {1, 2, "[1,2]"}, {-2, 9, "[2,3]"}, {3, 1, "[]"}, {9, 12, "[]"}, {-9, 0, "[0]"}, {0, -9, "[0]"}, {1, -9, "[]"}} {
		if got, n := Trim("[0, 1,2,3]", tt.start, tt.stop); got != tt.want || n != Length(got) {
			t.Errorf("Trim %d %d: %s, %d", tt.start, tt.stop, got, n)
		}
	}
	for _, tt := range []struct {
		value             string
		start, stop, want int
	}{{"2", 0, 0, 1}, {"2", 2, 0, 3}, {"2", 0, 1, -1}, {"2", -1, 0, 3}, {`{"b":1,"a":[]}`, 0, 0, 2}, {"2.0", 0, 0, -1}, {"9", 0, 0, -1}, {"1", -99, -99, -1}, {"2", 99, 0, 3}} {
		if got := Seek(tt.value).Index(`[1,2,{"a":[],"b":1},2]`, tt.start, tt.stop); got != tt.want {
			t.Errorf("Index %s %d %d: %d", tt.value, tt.start, tt.stop, got)
		}
	}
	if got := Seek("1").Index("[]", 0, 0); got != -1 {
		t.Error(got)
	}
	if got, n := Append("[ 1 ]", []string{"2", "3"}); got != "[ 1,2,3 ]" || n != 3 {
		t.Errorf("%s, %d", got, n)
	}
	if got, n := Append("[ ]", []string{"2"}); got != "[2 ]" || n != 1 {
		t.Errorf("%s, %d", got, n)
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":[2]}`, `{"b": [ 2 ], "a": 1}`, true},
		{`{"a":1,"a":2}`, `{"a":2}`, true},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`{"a":1}`, `{"b":1}`, false},
		{"[0]", "[0.0]", false},
		{"[1.50]", "[15e-1]", true},
		{"[1]", "[1,1]", false},
		{"[]", "[ ]", true},
		{"[]", "{}", false},
		{"9423372036854775909", "9423372036854775910", false}, // the same as doubles
		{"-0", "0", true},
		{"-0.0", "0.0", true},
		{"0.0", "0", false},
		{"1e999", "2e999", true},
		{"1e999", "-1e999", false},
		{`{"a":{"b":1,"b":2},"a":{"b":3,"b":4}}`, `{"a":{"b":4}}`, true},
		{`{"a":1,"a":1}`, `{}`, false},
		{`{"b":[{"y":1,"x":2}],"a":1}`, `{"a":1,"b":[{"x":2,"y":1}]}`, true},
		{`"\u00e9"`, `"é"`, true},
		{`"1"`, "1", false},
		{"true", "false", false},
	} {
		if got := Seek(tt.a).Equals(tt.b); got != tt.want || Seek(tt.b).Equals(tt.a) != tt.want {
			t.Errorf("%s and %s: %v", tt.a, tt.b, got)
		}
	}
}

func TestScalars(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"{}": "object", "[]": "array", `""`: "string", "true": "boolean", "null": "null", "-1": "integer",
		"18446744073709551615": "integer", "18446744073709551616": "number", "1.0": "number", "1e2": "number"} {
		if got := Kind(value); got != want {
			t.Errorf("%s: %s", value, got)
		}
	}
	if text, n := AppendToString(`"\u00e9"`, `"é\n"`); text != `"\u00e9é\n"` || n != 5 {
		t.Errorf("%s, %d", text, n)
	}
	for value, want := range map[string]string{"[1]": "[] true", "[]": "[] false", `{"a":1}`: "{} true", "{ }": "{ } false", "5": "0 true", "0": "0 false", "0.0": "0.0 false", `"a"`: `"a" false`, "true": "true false"} {
		text, changed := Clear(value)
		if got := fmt.Sprint(text, " ", changed); got != want {
			t.Errorf("%s: %s", value, got)
		}
	}
	if names := Names(`{"a":1,"b":2,"\u0061":3}`); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("%q", names)
	}
}

func TestCompact(t *testing.T) {
	t.Parallel()
	long := "{"
	for i := range 40 {
		long += fmt.Sprintf(`"m%d":0,`, i)
	}
	for value, want := range map[string]string{
		` { "a" : [ 1 , 2 ] , "b" : { } , "c":[ ] } `: `{"a":[1,2],"b":{},"c":[]}`,
		`{"a":1,"b":2,"\u0061":{"x": 3}}`:             `{"a":{"x":3},"b":2}`,
		`{"a":1,"a":2,"a":3}`:                         `{"a":3}`,
		`"\u0041\/\u00e9\t\u0001\ud83d\ude00"`:        `"A/é\t\u0001😀"`,
		`"\ud83d"`:                                    `"\ud83d"`,
		`[1.0,1E2,-0]`:                                `[1.0,1E2,-0]`,
		" 5\n":                                        "5",
		long + `"m3":7}`:                              strings.Replace(long, `"m3":0`, `"m3":7`, 1)[:len(long)-1] + "}",
		`{"a":{"b":1, "b":2},"c":[{"d":1,"d":[1, 2]} ] }`: `{"a":{"b":2},"c":[{"d":[1,2]}]}`,
	} {
		if got := Compact(value); got != want {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
		if got := Compact(want); got != want {
			t.Errorf("%s is not stable: %s", want, got)
		}
	}
	// What the quick way finds compact is so.
	for _, value := range []string{
		`{"a":[{"b":1,"c":"x y"},{"b":2}],"c":{"a":1}}`, `[[],{},"a:b",-1.5e3,null]`, long + `"m3":7}`, `{"":1,"a":{"":2}}`,
		`{"a":{"b":1},"a":2}`, `{"a":{"b":1,"b":2}}`, `{"a" :1}`, `{"a": 1}`, `[1 ]`, `["a" ,1]`, "{\"abcdefghi\":1,\"abcdefghj\":2,\"abcdefghi\":3}",
		strings.Repeat("[", 20) + strings.Repeat("]", 20), `{"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}",
	} {
		exact := isCompactAt(value, 0) >= 0
		if surelyCompact(value) && !exact {
			t.Errorf("%s: not compact", value)
		}
		if deep := strings.Contains(value, "[[["); len(value) < 60 && !deep && exact && !surelyCompact(value) {
			t.Errorf("%s: the quick way does not know", value)
		}
	}
}

// A text without repeated names is returned as it is, whether the quick way can tell or not.
func TestUnrepeated(t *testing.T) {
	t.Parallel()
	wide := "{"
	for i := range 100 {
		wide += `"m` + strconv.Itoa(i) + `" : ` + strconv.Itoa(i) + ", "
	}
	deep := func(object string) string { return strings.Repeat("[", 40) + object + strings.Repeat("]", 40) }
	for value, repeats := range map[string]bool{
		` { "a" : [ 1 , "a" ] , "b" : {"a":"b", "b" : {}} } `: false,
		`[{"a":1},{"a":1}, "a", {"b":"a","a":"b\\\""}]`:       false,
		`{"\u0061":1,"\u0062":2}`:                             false,
		`5`:                                                   false, ` "a:b" `: false, `{}`: false,
		wide + `"n" : 1}`:                        false,
		deep(`{"a":1,"b":1}`):                    false,
		` { "a" : 1 , "a" : 2 } `:                true,
		`{"b":"\n","a":1,"\u0061":2}`:            true,
		`[1,{"b":{"a":1},"c":[{"x":1,"x" :1}]}]`: true,
		wide + `"m7":1}`:                         true,
		deep(`{"a":1,"a":1}`):                    true,
	} {
		want := value
		if repeats {
			want = Compact(value)
		}
		if got := Unrepeated(value); got != want {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
	}
}

// TestWriter compares pieces, one text and its count.
func TestWriter(t *testing.T) {
	f := Format{Indent: "\t", Newline: "\n", Space: " "}
	for value, want := range map[string]string{
		`{"a":[1,{"b":2}],"c":[],"d":{}}`:            "{\n\t\"a\": [\n\t\t1,\n\t\t{\n\t\t\t\"b\": 2\n\t\t}\n\t],\n\t\"c\": [],\n\t\"d\": {}\n}",
		"[" + strings.Repeat(`"x",`, 50_000) + "{}]": "[" + strings.Repeat("\n\t\"x\",", 50_000) + "\n\t{}\n]",
		`"` + strings.Repeat("y", 200_000) + `"`:     `"` + strings.Repeat("y", 200_000) + `"`,
	} {
		whole, count := Writer{Format: f}, Writer{Format: f, Count: true}
		whole.Value(value, 0)
		count.Value(value, 0)
		if got := string(whole.Out); got != want || count.Size != len(want) || whole.Size != len(want) {
			t.Errorf("%.50q: %.100q, counted %d of %d", value, got, count.Size, len(want))
		}
		var got []byte
		most := 0
		pieces := Writer{Format: f, Send: func(piece []byte) error {
			got, most = append(got, piece...), max(most, len(piece))
			return nil
		}}
		pieces.Value(value, 0)
		if err := pieces.End(); err != nil || string(got) != want || most > pieceSize {
			t.Errorf("%.50q in pieces: %v, %d bytes of %d, pieces of up to %d", value, err, len(got), len(want), most)
		}
		bounded := Writer{Format: f, Count: true, Most: 10}
		if bounded.Value(value, 0); bounded.Failed() != (len(want) > 10) || bounded.Size > 10+len(want)/2 && len(value) < len(want) {
			t.Errorf("%.50q: counted %d", value, bounded.Size)
		}
		sent := 0
		failing := Writer{Format: f, Send: func([]byte) error { sent++; return io.ErrClosedPipe }}
		failing.Value(value, 0)
		if err := failing.End(); err != io.ErrClosedPipe || sent != 1 {
			t.Errorf("%.50q: %v after %d failed pieces", value, err, sent)
		}
	}
}

// decoded returns a value as encoding/json reads it, with its numbers as they are spelled.
func decoded(t testing.TB, value string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	return v
}

func encoded(t testing.TB, v any) string {
	t.Helper()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	drill.Check(t, e.Encode(v))
	return out.String()
}

// FuzzEdits compares edits of the text with those of decoded values.
func FuzzEdits(f *testing.F) {
	for _, doc := range []string{`{"a":[1, 2,{"b":null}] , "c":"x\u00e9"}`, `[ [ ], [1], {"a":{}} ]`, `5`, `{"a":1,"a":[2]}`} {
		for _, path := range []string{"$", "$..*", "$.a", "$.*", "$[1]", "$..a", "$[0,1]"} {
			f.Add(doc, path, 1)
		}
	}
	f.Fuzz(func(t *testing.T, doc, path string, index int) {
		if !json.Valid([]byte(doc)) || strings.ToValidUTF8(doc, "") != doc || strings.Contains(doc, `\u`) && strings.Contains(strings.ToLower(doc), `\ud`) {
			return
		}
		compact := Compact(doc)
		if got, want := encoded(t, decoded(t, compact)), encoded(t, decoded(t, doc)); got != want {
			t.Fatalf("Compact of %q is %q", doc, compact)
		}
		p, err := jsonpath.Parse(path)
		if err != nil {
			return
		}
		budget := jsonpath.BudgetOf(compact)
		found, _, err := p.Find(&budget, nil, compact)
		if err != nil || len(found) == 0 {
			return
		}
		deleted, n := Delete(compact, found)
		if n == 0 || deleted != "" && !json.Valid([]byte(deleted)) {
			t.Fatalf("Delete %s of %s: %s, %d", path, compact, deleted, n)
		}
		// A mark in the place of each value shows the same structure in the text and in what is decoded.
		popped := 0
		text, err := Transform(compact, found, func(i int, value string) (string, error) {
			if value[0] != '[' {
				return value, nil
			}
			before, _ := decoded(t, value).([]any)
			text, one := Pop(value, index)
			after, _ := decoded(t, text).([]any)
			if one == "" {
				if len(before) > 0 {
					t.Fatalf("nothing popped of %s", value)
				}
				return text, nil
			}
			popped++
			at := index
			if at < 0 {
				at = max(at+len(before), 0)
			}
			at = min(at, len(before)-1)
			if encoded(t, slices.Delete(slices.Clone(before), at, at+1)) != encoded(t, after) || encoded(t, before[at]) != encoded(t, decoded(t, one)) {
				t.Fatalf("Pop %d of %s: %s, %s", index, value, text, one)
			}
			inserted, n, ok := Insert(text, min(at, len(after)), []string{one})
			if !ok || n != len(before) || encoded(t, decoded(t, inserted)) != encoded(t, before) {
				t.Fatalf("Insert of what was popped of %s: %s", value, inserted)
			}
			trimmed, n := Trim(value, at, at)
			if n != 1 || encoded(t, decoded(t, trimmed)) != encoded(t, []any{before[at]}) {
				t.Fatalf("Trim %d of %s: %s", at, value, trimmed)
			}
			if i := Seek(one).Index(value, 0, 0); i < 0 || i > at {
				t.Fatalf("Index of %s in %s: %d", one, value, i)
			}
			return text, nil
		})
		if err != nil || !json.Valid([]byte(text)) || popped == 0 && text != compact {
			t.Fatalf("%s of %s: %s, %v", path, compact, text, err)
		}
	})
}

func BenchmarkCompact(b *testing.B) {
	const doc = `{"sku":"A-1234567","customer":"customer-000123","items":[{"id":1,"qty":2,"price":12.5},{"id":2,"qty":1,"price":99.99}],"address":{"street":"Main Street 1","city":"Springfield","zip":"12345"},"note":"leave at the door please, ring twice","status":"open","total":124.99,"x":"yyyyyyyyyyyyyy"}`
	flat := `{"id":123,"customer":"c-00123","total":123.23,"note":"` + strings.Repeat("lorem ipsum ", 19) + `"}`
	for _, c := range []struct{ name, doc string }{{"nested", doc}, {"flat", flat}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				Compact(c.doc)
			}
		})
		b.Run(c.name+"/unrepeated", func(b *testing.B) {
			for b.Loop() {
				Unrepeated(c.doc)
			}
		})
	}
}
