package admin

import (
	"strings"
	"testing"
)

func TestDiagnose(t *testing.T) {
	t.Parallel()
	const gb = 1 << 30
	for _, tt := range []struct {
		name string
		m    memoryFigures
		want string
	}{
		{"empty", memoryFigures{}, "Hi Sam, this instance is empty"},
		{"well", memoryFigures{used: gb, peak: gb, resident: 2 * gb, limit: 2 * gb}, "I can't find any memory issue"},
		{"near the limit", memoryFigures{used: gb, peak: gb, limit: gb}, "items take 1.00G of the 1.00G of maxmemory"},
		{"once more", memoryFigures{used: gb, peak: 2 * gb}, "items took 2.00G once"},
		{"much besides", memoryFigures{used: gb, peak: gb, resident: 4 * gb}, "the process takes 4.00G"},
	} {
		if got := memoryDoctor(tt.m); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q does not say %q", tt.name, got, tt.want)
		}
	}
}
