package jsontext

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// FuzzNumber compares ParseNumber with strconv.
func FuzzNumber(f *testing.F) {
	for _, s := range []string{"0", "-0", "1", "12.5", "-0.1", "124.99", "99999999999999", "0.0000000000001", "123456789012345", "1e3", "-1.5E-3", "1e999", "1e-7", "1.5e-10", "1e-100", "1e21", "-1e20", "0.30000000000000004"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) || s[0] != '-' && (s[0] < '0' || s[0] > '9') || s[len(s)-1] <= ' ' {
			return
		}
		want, _ := strconv.ParseFloat(s, 64)
		if got := ParseNumber(s); got != want {
			t.Errorf("ParseNumber(%s) = %v, want %v", s, got, want)
		}
		if encoded, err := json.Marshal(want + 0); err == nil {
			if got := string(AppendNumber(nil, want)); got != string(encoded) {
				t.Errorf("AppendNumber(%v) = %s, want %s", want, got, encoded)
			}
		}
	})
}

// FuzzUnquote compares Unquote with encoding/json.
func FuzzUnquote(f *testing.F) {
	for _, s := range []string{`""`, `"a"`, `"\n\"\\\/\b\f\r\t"`, `"\u00e9"`, `"\ud83d\ude00"`, `"\ud800"`, `"\ud800\u0041"`, `"\ud800\ud800\udc00"`, `"\udc00x"`, `"x\ud800"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, quoted string) {
		var want any
		if json.Unmarshal([]byte(quoted), &want) != nil || quoted[0] != '"' || quoted[len(quoted)-1] != '"' {
			return
		}
		if got := Unquote(quoted); string([]rune(got)) != want {
			t.Errorf("Unquote(%s) = %q, want %q", quoted, got, want)
		}
	})
}

// TestStringEnd finds the end of strings of every size, with and without escapes, at every distance from the
// end of the text.
func TestStringEnd(t *testing.T) {
	for size := range 90 {
		for escape := -1; escape < size; escape++ {
			for _, escaped := range []string{`\"`, `\\`, `\\\"`} {
				inner := strings.Repeat("x", size)
				if escape >= 0 {
					inner = inner[:escape] + escaped + inner[escape:]
				}
				for _, after := range []string{"", ",", `,"a":"b"}`, `"\"`} {
					text := `{"` + inner + `"` + after
					if got, want := StringEnd(text, 1), len(inner)+3; got != want {
						t.Fatalf("StringEnd(%s, 1) = %d, want %d", text, got, want)
					}
				}
				if open := `"` + inner; StringEnd(open, 0) != len(open) {
					t.Fatalf("StringEnd(%s, 0) = %d, want %d", open, StringEnd(open, 0), len(open))
				}
			}
		}
	}
}
