package jsontext

import (
	"encoding/json"
	"testing"
)

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
