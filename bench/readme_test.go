package main

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReadmeBenchmarks compares the table of benchmarks with those in the repository.
func TestReadmeBenchmarks(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "<!-- begin benchmarks -->\n")
	table, _, _ = strings.Cut(table, "<!-- end benchmarks -->")
	listed := map[string]bool{}
	for _, line := range strings.Split(table, "\n")[2:] {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			for _, name := range regexp.MustCompile("`(.*?)`").FindAllStringSubmatch(cells[1], -1) {
				listed[strings.TrimSpace(cells[2])+" "+name[1]] = true
			}
		}
	}
	found := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func Benchmark(\w+)\(b \*testing\.B\)`)
	err = filepath.WalkDir("..", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		source, err := os.ReadFile(file)
		folder, _ := filepath.Rel("..", filepath.Dir(file))
		for _, m := range function.FindAllSubmatch(source, -1) {
			found[filepath.ToSlash(folder)+" "+string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if !found[name] {
			t.Errorf("the table lists %s, which does not exist", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if !listed[name] {
			t.Errorf("the table lacks %s", name)
		}
	}
	if len(listed) == 0 {
		t.Error("the table is empty")
	}
}
