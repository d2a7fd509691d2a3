package clock

import "testing"

// TestParseMoment: a moment is a number of ms or a time of RFC 3339, within the years that both can name.
func TestParseMoment(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want int64 // 0: illegal
	}{
		{"1", 1},
		{"1767225600000", 1767225600000},
		{"2026-01-01T00:00:00Z", 1767225600000},
		{"2026-01-01T01:00:00.0019+01:00", 1767225600001},
		{"9999-12-31T23:59:59.999Z", End},
		{"253402300799999", End},
		{"253402300800000", 0},
		{"0", 0},
		{"-5", 0},
		{"1970-01-01T00:00:00Z", 0},
		{"1969-12-31T23:59:59Z", 0},
		{"2026-01-01", 0},
		{"2026-02-30T00:00:00Z", 0},
		{"1e3", 0},
		{" 1", 0},
		{"", 0},
	} {
		ms, ok := ParseMoment(tt.text)
		if ok != (tt.want > 0) || ok && ms != tt.want {
			t.Errorf("ParseMoment(%q) is %d, %v; want %d", tt.text, ms, ok, tt.want)
		}
	}
	if got := FormatMoment(End); got != "9999-12-31T23:59:59.999Z" {
		t.Errorf("the end is %s", got)
	}
}
