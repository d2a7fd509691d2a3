package main

import (
	"strings"
	"unicode/utf8"
)

// table renders rows under a header in Markdown, in columns.
func table(header []string, rows [][]string) string {
	width := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	line := func(row []string) {
		for i, cell := range row {
			out.WriteString("| " + cell + strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell)+1))
		}
		out.WriteString("|\n")
	}
	line(header)
	for i := range header {
		out.WriteString("|" + strings.Repeat("-", width[i]+2))
	}
	out.WriteString("|\n")
	for _, row := range rows {
		line(row)
	}
	return out.String()
}
