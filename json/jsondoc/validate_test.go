package jsondoc

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// validateSeeds are texts of all kinds; most are JSON.
var validateSeeds = []string{
	"", " ", "{}", "[]", "[[],{}]", `{"a":1}`, ` { "a" : [ 1 , -2.5e+10 , 0.1E-2 ] , "b" : { } } `,
	`"string"`, `"\"\\\/\b\f\n\r\t\u00e9\uD83D"`, `"` + "a\x1fb" + `"`, `"` + "a\x00" + `"`, `"` + "Köln 東京 😀" + `"`,
	`"` + "\xff" + `"`, `"12345678` + "\xc3" + `12345678"`, `"1234567` + "\x7f" + `"`, `"12345678\"12345678"`, `"12345678\`, `"12345678`,
	"true", "false", "null", "nul", "truex", "-", "-0", "01", "1.", ".5", "1e", "1e+", "0x1", "1 2", "[1,]", "[,1]", "{,}", `{"a"}`, `{"a":}`,
	`{"a":1,}`, `{"a":1,"b"}`, `{1:2}`, "[1}", `{"a":1]`, "]", "}", "[", "{", ",", ":", "{}{}", "[]x", "1\x00", "\x00", "[1\x00]", "\ufeff{}", "\u00a01",
	`"\u12G4"`, `"\u123"`, `"\x"`, "\v1", "1\f",
	strings.Repeat("[", MaxNesting) + strings.Repeat("]", MaxNesting),
	strings.Repeat("[", MaxNesting+1) + strings.Repeat("]", MaxNesting+1),
	strings.Repeat(`{"a":`, MaxNesting) + "1" + strings.Repeat("}", MaxNesting),
	strings.Repeat(`[{"a":`, MaxNesting/2) + "1" + strings.Repeat("}]", MaxNesting/2),
	strings.Repeat(`[{"a":`, MaxNesting/2) + "[]" + strings.Repeat("}]", MaxNesting/2),
	`{"id":"order-000123","items":[{"sku":"A-1","qty":2},{"sku":"B-7","price":109.97}],"city":"Köln","ok":true,"no":null}`,
}

// checkScan compares scan with the standard library and gjson.
func checkScan(t *testing.T, text string) {
	t.Helper()
	if len(text) > 1<<16 {
		return
	}
	want := json.Valid([]byte(text)) && utf8.ValidString(text) && checkNesting(text) == nil
	if _, got := scan(text); got != want {
		t.Errorf("scan(%q) = %v", text, got)
	}
	if shallow := checkNesting(text) == nil; shallow && want != (gjson.Valid(text) && utf8.ValidString(text)) {
		t.Errorf("gjson judges %q otherwise", text)
	}
	if err := check(text); (err == nil) != want {
		t.Errorf("check(%q) = %v", text, err)
	}
}

func FuzzScan(f *testing.F) {
	for _, text := range validateSeeds {
		f.Add(text)
	}
	f.Fuzz(checkScan)
}

// TestScan changes, inserts and removes random bytes of texts.
func TestScan(t *testing.T) {
	t.Parallel()
	const bytes = "{}[]\",:\\ \n\x00\x1f019-+.eEutfn/\x7f\x80\xc3\xa9\xff"
	for _, seed := range validateSeeds {
		checkScan(t, seed)
		for range 500 {
			text := []byte(seed)
			for range 1 + rand.IntN(3) {
				at := rand.IntN(len(text) + 1)
				b := bytes[rand.IntN(len(bytes))]
				switch {
				case at == len(text):
					text = append(text, b)
				case rand.IntN(3) == 0:
					text = append(text[:at], text[at+1:]...)
				default:
					text[at] = b
				}
			}
			checkScan(t, string(text))
			if t.Failed() {
				return
			}
		}
	}
}

func BenchmarkScan(b *testing.B) {
	text := validateSeeds[len(validateSeeds)-1]
	long := `{"sku":"A-1","note":"` + strings.Repeat("x", 260) + `"}`
	for name, text := range map[string]string{"members": text, "string": long} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, ok := scan(text); !ok {
					b.Fatal("invalid")
				}
			}
		})
		b.Run(name+", gjson", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if !gjson.Valid(text) || !utf8.ValidString(text) {
					b.Fatal("invalid")
				}
			}
		})
	}
}
