package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"mayfly/test/drill"
)

func compare(t *testing.T, got []string, want string) {
	t.Helper()
	if text := strings.Join(got, "\n") + "\n"; text != want[1:] {
		t.Errorf("it draws\n%swant\n%s", text, want[1:])
	}
}

// day returns a forecast of five buckets.
func day() *Forecast {
	f := &Forecast{Name: "orders", Now: 1_000_000, Every: 3600, Later: Amount{3, 30}, Never: Amount{1234, 5}}
	for i, n := range []Bucket{{Amount: Amount{8, 80}, Own: Amount{4, 40}}, {}, {Amount: Amount{4, 40}}, {Amount: Amount{1, 1}, Own: Amount{1, 1}}, {Amount: Amount{4000, 5}, Own: Amount{1, 1}}} {
		n.From = int64(i) * 3_600_000
		f.Buckets = append(f.Buckets, n)
	}
	f.Buckets[4] = Bucket{From: 4 * 3_600_000, Amount: Amount{6, 60}, Own: Amount{2, 20}}
	return f
}

func TestHistogram(t *testing.T) {
	t.Parallel()
	compare(t, Histogram(day(), 60, 4, Style{}), `
orders: what dies in the next 4 h
      8┤███
       ┤███             ███
      4┤▒▒▒     ███     ███
       ┤▒▒▒     ███ ▒▒▒ ▒▒▒
       └───────────────────
        now    +2 h
█ by the default: 12   ▒ by an end of its own: 7   later: 3
never: 1,234
`)
	f := day()
	f.Name, f.Overdue = "", Amount{5, 50}
	compare(t, Histogram(f, 24, 2, Style{ASCII: true}), `
all containers: what die
      8|##          ##
      4|oo    ## oo oo
       +--------------
        now  +2 h
# by the default: 12
o by an end of its own:
later: 3   never: 1,234
when the hold ends: 5
`)
	colored := Histogram(day(), 60, 2, Style{Color: true})
	if text := strings.Join(colored, ""); !strings.Contains(text, cyan+"███"+plain) || !strings.Contains(text, yellow+"▒▒▒"+plain) {
		t.Errorf("colours are missing: %q", text)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	f := day()
	f.Buckets = f.Buckets[:1]
	compare(t, List(f), `
1970-01-01T00:00:00Z items 8 bytes 80 own 4 ownbytes 40
later items 3 bytes 30
never items 1234 bytes 5
overdue items 0 bytes 0
`)
}

// screen returns figures of a server for drawings.
func screen() *Figures {
	return &Figures{
		Version: "0.1.0", Address: "127.0.0.1:6379", Uptime: 90_061, Clients: 12, Now: 1_767_225_600_000, Rates: true, Commands: 12_345, Deaths: 7,
		Commits: 300, CommitLast: 120, CommitSlow: 1500, OldestDead: 2, Living: 1_200_000, Used: 5 << 20, MaxMemory: 1 << 30, Forecast: day(),
		Containers: []Container{
			{Name: "orders", TTL: "86400", Living: 1_199_990, Expiring: 5, MeanLeft: 3_700_000, Memory: 4 << 20},
			{Name: "bad\x1b[2Jname", TTL: "off", Living: 10, Memory: 100},
		}, More: 3,
	}
}

func TestTop(t *testing.T) {
	t.Parallel()
	compare(t, Top(screen(), 100, 24, Style{}), topScreen)
	few := screen()
	few.Rates, few.Forecast, few.Containers = false, nil, nil
	compare(t, Top(few, 100, 10, Style{}), `
mayfly 0.1.0 at 127.0.0.1:6379   up 1 d 1 h   12 clients
commands/s -   deaths/s -   purge lag 2.0 ms   commits/s -   commit 120 us (p99 1.5 ms)
living 1,200,000   memory 5.0 MB of 1.0 GB
q quits
`)
	if got, want := Line(screen()), "2026-01-01T00:00:00Z commands 12345 deaths 7 commits 300 commit_usec 120 commit_p99_usec 1500 oldest_dead_ms 2 living 1200000 memory 5242880 clients 12"; got != want {
		t.Errorf("the line is %q, want %q", got, want)
	}
}

const topScreen = `
mayfly 0.1.0 at 127.0.0.1:6379   up 1 d 1 h   12 clients
commands/s 12,345   deaths/s 7   purge lag 2.0 ms   commits/s 300   commit 120 us (p99 1.5 ms)
living 1,200,000   memory 5.0 MB of 1.0 GB

orders: what dies in the next 4 h
      8┤███
       ┤███
       ┤███             ███
       ┤███             ███
      4┤▒▒▒     ███     ███
       ┤▒▒▒     ███     ███
       ┤▒▒▒     ███     ▒▒▒
       ┤▒▒▒     ███ ▒▒▒ ▒▒▒
       └───────────────────
        now    +2 h
█ by the default: 12   ▒ by an end of its own: 7   later: 3   never: 1,234

container                default      living       dying   mean left      memory
orders                   86400 s   1,199,990           5   1 h 1 min      4.0 MB
bad?[2Jname                  off          10           0           -       100 B
and 3 more
q quits
`

// TestNothingIsWider: whatever the figures and the terminal, no line is wider, no screen longer, and nothing
// that came from the server moves the cursor. A bucket that is not empty has a bar.
func TestNothingIsWider(t *testing.T) {
	t.Parallel()
	rnd := drill.Rand(t)
	number := func() int64 { return rnd.Int64() >> rnd.IntN(63) }
	for range drill.Pick(300, 1000, 100_000) {
		f := screen()
		f.Now, f.Commands, f.Living, f.Used, f.Uptime, f.OldestDead = number()>>20, number(), number(), number(), number(), number()>>12
		f.Forecast = &Forecast{Name: []string{"", "a\r\nb", strings.Repeat("é", 100)}[rnd.IntN(3)], Every: 1 + rnd.Int64N(31_536_000)}
		for range 1 + rnd.IntN(70) {
			b := Bucket{Amount: Amount{number() >> 8, number()}}
			b.Own.Items = rnd.Int64N(b.Items + 1)
			f.Forecast.Buckets = append(f.Forecast.Buckets, b)
		}
		width, height := 1+rnd.IntN(140), 1+rnd.IntN(50)
		style := Style{Color: rnd.IntN(2) == 0, ASCII: rnd.IntN(2) == 0}
		lines := Top(f, width, height, style)
		if len(lines) > height {
			t.Fatalf("%d lines on a screen of %d", len(lines), height)
		}
		for _, line := range append(lines, Histogram(f.Forecast, width, 8, style)...) {
			if wide(line) > width || strings.ContainsAny(line, "\r\n") || strings.Contains(line, "\x1b[2J") {
				t.Fatalf("width %d: %q", width, line)
			}
		}
		for _, b := range f.Forecast.Buckets {
			own, all := cells(b, max(b.Items, number()>>8, 1), 8)
			if (all == 0) != (b.Items == 0) || all > 8 || own > all || own > 0 && b.Own.Items == 0 {
				t.Fatalf("%+v has %d and %d lines", b, own, all)
			}
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ got, want string }{
		{Count(0), "0"}, {Count(999), "999"}, {Count(1000), "1,000"}, {Count(-1234567), "-1,234,567"},
		{Short(9999), "9999"}, {Short(10_000), "10k"}, {Short(9_999_499), "9999k"}, {Short(12_345_678), "12M"},
		{Bytes(1023), "1023 B"}, {Bytes(1024), "1.0 KB"}, {Bytes(1<<20 - 1), "1.0 MB"}, {Bytes(3 << 30), "3.0 GB"},
		{Span(0), "0 s"}, {Span(59), "59 s"}, {Span(61), "1 min 1 s"}, {Span(3600), "1 h"}, {Span(90_000), "1 d 1 h"},
		{Micros(999), "999 us"}, {Micros(1500), "1.5 ms"}, {Micros(2_000_000), "2.0 s"},
		{Printable("a\x1b[2Jb\xff\u202eé"), "a?[2Jb??é"}, {cut("abc", 2), "ab"}, {cut("日本", 3), "日"}, {cut("e\u0301e", 1), "e\u0301"}, {cut(cyan+"abc"+plain, 2), cyan + "ab" + plain},
	} {
		if tt.got != tt.want {
			t.Errorf("it is %q, want %q", tt.got, tt.want)
		}
	}
	if got := flow([]string{"abc", "de", "f"}, 8); !slices.Equal(got, []string{"abc   de", "f"}) {
		t.Error(fmt.Sprint(got))
	}
}
