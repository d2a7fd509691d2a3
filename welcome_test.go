package main

import (
	"strings"
	"testing"

	"mayfly/server/config"
)

// TestWelcome: the first lines name the addresses, the page and the folder.
func TestWelcome(t *testing.T) {
	t.Parallel()
	const untouched = "\nTry it:\n  redis-cli -p 6379 CONTAINER.SET orders TTL 10\n  redis-cli -p 6379 DOC.PUT orders 1 '{\"item\":\"tea\"}'\n  redis-cli -p 6379 DOC.GET orders 1\n"
	for _, tt := range []struct {
		page              string
		untouched, manual bool
		want              string
	}{
		{"", false, false, "; its data is in d\nWhat it holds:\n"},
		{"http://127.0.0.1:8379/", false, false, "; its data is in d\nIts page: http://127.0.0.1:8379/\nWhat it holds:\n"},
		{"", true, false, "; its data is in d" + untouched + "Ten seconds after the second command, the third answers (nil).\n"},
		{"", true, true, "; its data is in d" + untouched + "After redis-cli -p 6379 CLOCK ADVANCE 10, the third answers (nil).\n"},
	} {
		var text strings.Builder
		welcome(&text, []string{"tcp 127.0.0.1:6379"}, tt.page, &config.Settings{Data: config.Data{Dir: "d", ManualClock: tt.manual}, Network: config.Network{Port: 6379}}, tt.untouched)
		if got := text.String(); !strings.Contains(got, " listens on 127.0.0.1:6379"+tt.want) {
			t.Errorf("%q", got)
		}
	}
}
