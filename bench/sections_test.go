package main

import (
	"os"
	"strings"
	"testing"
)

func TestSectionsAreReplacedByThemselves(t *testing.T) {
	page := withSection("", "compare", "## One\n")
	page = withSection(page, "purge", "## Two\n")
	page = withSection(page, "growth", "## Three\n")
	page = withSection(page, "purge", "## Two again\n")
	want := pageHead + "\n<!-- begin compare -->\n## One\n<!-- end compare -->\n" +
		"\n<!-- begin purge -->\n## Two again\n<!-- end purge -->\n" +
		"\n<!-- begin growth -->\n## Three\n<!-- end growth -->\n"
	if page != want {
		t.Errorf("got\n%s\nwant\n%s", page, want)
	}
	if page := withSection("an old page", "purge", "## Two\n"); strings.Contains(page, "old") {
		t.Errorf("what is no page of sections is kept:\n%s", page)
	}
}

func TestPublish(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("bench", 0o755); err != nil {
		t.Fatal(err)
	}
	o := options{}
	if err := o.publish(t.Context(), "purge", "## Purge\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(resultsMarkdown); err == nil {
		t.Error("written without being asked to")
	}
	o.write, o.machine.CPU = true, "Z80"
	if err := o.publish(t.Context(), "purge", "## Purge\n\n"); err != nil {
		t.Fatal(err)
	}
	o.quick = true
	if err := o.publish(t.Context(), "growth", "## Growth\n"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(resultsMarkdown)
	if err != nil {
		t.Fatal(err)
	}
	purge, growth, _ := strings.Cut(string(text), "<!-- end purge -->")
	if !strings.HasPrefix(purge, pageHead) || !strings.Contains(purge, "## Purge\n\nMeasured on: Z80, ") || strings.Contains(purge, "quoted") {
		t.Errorf("section of a full run:\n%s", purge)
	}
	if !strings.Contains(growth, "## Growth") || !strings.Contains(growth, "not to be quoted") {
		t.Errorf("section of a quick run:\n%s", growth)
	}
}

func TestGrowthMarkdown(t *testing.T) {
	one := func(v float64) spread { return spread{v, v, v} }
	page := growthMarkdown([]growthResult{
		{documents: 10_000, get: one(1000), put: one(500), memory: 900, perSecond: 1},
		{documents: 100_000, get: one(900), put: one(400), memory: 500, perSecond: 1},
		{documents: 1_000_000, get: one(800), put: one(350), memory: 600, perSecond: 1},
		{documents: 10_000_000, leftOut: "no room"},
	})
	for _, want := range []string{
		"| 800 /s (800 /s – 800 /s), 80 % ", "**missed**, the largest difference is 30 %", "met, the largest difference is 20 %", "left out: no room",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the section lacks %q:\n%s", want, page)
		}
	}
	if page := growthMarkdown([]growthResult{{documents: 1, leftOut: "no room"}}); strings.Contains(page, "Target") {
		t.Errorf("a verdict on nothing:\n%s", page)
	}
}

func TestRoomFor(t *testing.T) {
	if why := roomFor(t.Context(), 1); why != "" {
		t.Error(why)
	}
	if why := roomFor(t.Context(), 1<<50); !strings.HasPrefix(why, "only ") {
		t.Errorf("room for more than there is on earth: %q", why)
	}
}
