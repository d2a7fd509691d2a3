package suggest

import (
	"strings"
	"testing"
)

// TestCommand: what a word means follows from the commands that there are.
func TestCommand(t *testing.T) {
	t.Parallel()
	commands := []string{"container.drop", "doc.get", "doc.put", "get"}
	for call, want := range map[string]string{
		"DOC.SET c 1 {}": "DOC.PUT", "doc gte c 1": "DOC.GET", "docs.put": "DOC.PUT", "COLLECTION.DELETE c": "CONTAINER.DROP", "GTE k": "", "doc": "",
	} {
		if got := Command(strings.Fields(call), commands); got != want {
			t.Errorf("%s: %q, want %q", call, got, want)
		}
	}
}

// TestNearest: a missing, extra or wrong letter, and two swapped neighbours are corrected.
func TestNearest(t *testing.T) {
	t.Parallel()
	list := []string{"import", "export", "check"}
	for word, want := range map[string]string{"imort": "import", "exxport": "export", "chekc": "check", "chack": "check", "other": "", "cabek": "", "": ""} {
		if got := Nearest(word, list); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}
