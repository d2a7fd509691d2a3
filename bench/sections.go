package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// The page of results has one section for each mode, between HTML comments. Each run replaces the sections
// of its own modes. A section says when and on which machine it was measured.

const pageHead = "# Results\n\nWritten by `go run ./bench -write`, each section by its own mode; " +
	"[README.md](README.md) says how it is measured.\n"

// publish prints the section of a mode, and writes it into the page of results with -write.
func (o options) publish(ctx context.Context, name, section string) error {
	if err := statusOf(ctx).print(os.Stdout, section+"\n"); err != nil {
		return err
	}
	if !o.write {
		return nil
	}
	page, err := os.ReadFile(resultsMarkdown)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	note := ""
	if o.quick {
		note = "**This was a quick run, with less of all: it shows that the bench works, its figures are not to be quoted.**\n\n"
	}
	text := withSection(string(page), name, strings.TrimRight(section, "\n")+"\n\n"+note+"Measured on: "+o.machine.String()+".\n")
	return os.WriteFile(resultsMarkdown, []byte(text), 0o644)
}

// withSection replaces the section of a name, or appends it to the page.
func withSection(page, name, section string) string {
	begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->\n"
	section = begin + section + end
	if !strings.HasPrefix(page, pageHead) {
		page = pageHead
	}
	before, rest, found := strings.Cut(page, begin)
	if found {
		if _, after, whole := strings.Cut(rest, end); whole {
			return before + section + after
		}
	}
	return page + "\n" + section
}
