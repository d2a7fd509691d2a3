package members

import (
	"encoding/json"
	"strings"
	"testing"

	"mayfly/expiry"
)

func TestRead(t *testing.T) {
	const at = 1795334400000
	for _, tt := range []struct {
		object   string
		ttl      expiry.TTL
		deadline int64
		faults   string // of ttl (t) and deadline (d)
	}{
		{`{}`, 0, 0, ""},
		{`[{"ttl":5,"expiresAt":1795334400}]`, 0, 0, ""},
		{`"ttl\"expiresAt"`, 0, 0, ""},
		{`{"a":{"ttl":5,"expiresAt":1795334400}}`, 0, 0, ""},
		{`{"ttl":5,"expiresAt":1795334400}`, 5, at, ""},
		{`{"expiresAt":"2026-11-22T08:00:00Z","ttl":-1}`, -1, at, ""},
		{`{"expires\u0041t":"2026-11-22T08:00:00\u005a"}`, 0, at, ""},
		{`{"expiresAt":null,"ttl":null}`, 0, 0, ""},
		{`{"expiresat":1795334400}`, 0, 0, ""},
		{`{"expiresAt":0,"ttl":0}`, 0, 0, "td"},
		{`{"expiresAt":1795334400,"ttl":0}`, 0, at, "t"},
		{`{"ttl":7,"expiresAt":"soon"}`, 7, 0, "d"},
		{`{"expiresAt":1795334400,"ttl":7,"expiresAt":1795334400}`, 7, 0, "d"},
		{`{"expiresAt":1795334400,"ttl":7,"ttl":7}`, 0, at, "t"},
	} {
		e := Read(tt.object, "expiresAt")
		faults := ""
		if e.TTLErr != nil {
			faults += "t"
		}
		if e.DeadlineErr != nil {
			faults += "d"
		}
		if e.TTL != tt.ttl || e.Deadline != tt.deadline || faults != tt.faults {
			t.Errorf("%s: %+v", tt.object, e)
		}
		if e := Read(tt.object, ""); e.TTL != tt.ttl || e.Deadline != 0 || e.DeadlineErr != nil {
			t.Errorf("%s without a deadline: %+v", tt.object, e)
		}
	}
}

func TestReadNamesBeyondASCII(t *testing.T) {
	for _, name := range []string{"時", `a"b`, `a\b`, "a\nb", "<", "é"} {
		for _, escape := range []bool{false, true} {
			quoted, _ := json.Marshal(name)
			if escape {
				var out strings.Builder
				for _, r := range name {
					out.WriteString(`\u` + strings.ToLower(string("0123456789abcdef"[r>>12&15])+string("0123456789abcdef"[r>>8&15])+string("0123456789abcdef"[r>>4&15])+string("0123456789abcdef"[r&15])))
				}
				quoted = []byte(`"` + out.String() + `"`)
			}
			object := `{"x":1,` + string(quoted) + `:1795334400}`
			if e := Read(object, name); e.Deadline != 1795334400000 {
				t.Errorf("%s: %+v", object, e)
			}
		}
	}
}

// FuzzRead compares what is read with the standard library's view of the same object.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"ttl":5,"end":1795334400}`, `{"end":"2026-11-22T08:00:00Z"}`, `{"\u0065nd":1795334400}`, `{"end":1,"end":2}`, `{"a":[{"end":1}]}`, `{"end":null}`, `{"end":"\u0032026-11-22T08:00:00Z"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, object string) {
		if !json.Valid([]byte(object)) || !strings.HasPrefix(strings.TrimSpace(object), "{") {
			return
		}
		e := Read(object, "end")
		var all map[string]json.RawMessage
		if err := json.Unmarshal([]byte(object), &all); err != nil {
			return
		}
		raw, there := all["end"]
		if !there {
			if e.Deadline != 0 || e.DeadlineErr != nil {
				t.Fatalf("%s: %+v", object, e)
			}
			return
		}
		if e.DeadlineErr != nil && strings.Contains(e.DeadlineErr.Error(), "repeated") {
			return // the standard library takes the last
		}
		var text string
		_ = json.Unmarshal(raw, &text)
		at, err := expiry.ParseDeadline("end", string(raw), text)
		if at != e.Deadline || (err == nil) != (e.DeadlineErr == nil) {
			t.Fatalf("%s: %+v, want %d, %v", object, e, at, err)
		}
	})
}
