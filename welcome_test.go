package main

import (
	"strings"
	"testing"

	"mayfly/server/config"
)

// TestWelcome: the first lines name the addresses, the page and the folder.
func TestWelcome(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ page, want string }{
		{"", "; its data is in d\nWhat it holds:\n"},
		{"http://127.0.0.1:8379/", "; its data is in d\nIts page: http://127.0.0.1:8379/\nWhat it holds:\n"},
	} {
		var text strings.Builder
		welcome(&text, []string{"tcp 127.0.0.1:6379"}, tt.page, &config.Settings{Dir: "d", Port: 6379}, false)
		if got := text.String(); !strings.Contains(got, " listens on 127.0.0.1:6379"+tt.want) {
			t.Errorf("%q", got)
		}
	}
}
