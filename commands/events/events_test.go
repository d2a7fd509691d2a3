package events

import (
	"testing"

	_ "mayfly/test/drill" // its flags
)

func TestClasses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "KEA": "AKE", "g$lshzxetdnKEm": "AnKEm", "Ex": "xE", "mK": "Km", "AAA": "A", "nd": "dn",
	} {
		e, err := Parse(text)
		if err != nil || e.String() != want {
			t.Errorf("%q is %q (%v), want %q", text, e, err, want)
		}
	}
	for _, text := range []string{"q", "KEAq", " ", "KÉ", "\xff"} {
		if e, err := Parse(text); err == nil || err.Error() != classUsage {
			t.Errorf("%q is %q (%v)", text, e, err)
		}
	}
}
