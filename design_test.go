package main

import (
	"mayfly/test/harness"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocsPackages: docs/design.md lists the packages in the order of the table of layers, without main and
// without helpers of tests.
func TestDocsPackages(t *testing.T) {
	_, chapter, _ := strings.Cut(harness.Guides(t)["docs/design.md"], "\n## Packages\n")
	var got, want []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\|").FindAllStringSubmatch(chapter, -1) {
		got = append(got, m[1])
	}
	for _, layer := range layers {
		if layer.folder != "." && !strings.HasSuffix(layer.folder, "test") && !strings.HasPrefix(layer.folder, "test/") {
			want = append(want, layer.folder)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/design.md lists the packages\n%q\nwant\n%q", got, want)
	}
}
