package config

import (
	"fmt"
	"io"
	"strings"
)

// helpWidth is the width of the help, and helpIndent the column where descriptions begin.
const (
	helpWidth  = 80
	helpIndent = 22
)

// PrintHelp lists every option with its default, its legal values and its unit, no wider than helpWidth.
func PrintHelp(w io.Writer) error {
	const head = `mayfly is a Redis-protocol server for JSON documents that die on time.

Usage: mayfly [config-file] [--option value ...]
       mayfly check | repair | export | import | forecast | top | health ...
                                       tools; each has --help
       mayfly help | version

Options can also be set in the config file, a line each (port 7000), which may
be a redis.conf, and in the environment (MAYFLY_PORT=7000, dashes become
underscores). The command line overrides the environment, which overrides the
file.

`
	var out strings.Builder
	out.WriteString(head)
	helpOptions(&out, false)
	out.WriteString("\nFor programs and config files that know Redis:\n\n")
	helpOptions(&out, true)
	out.WriteString("\n")
	helpEntry(&out, "--help, -h", "print this")
	helpEntry(&out, "--version, -v", "print the version")
	_, err := io.WriteString(w, out.String())
	return err
}

func helpOptions(out *strings.Builder, compat bool) {
	for i := range Options {
		if o := &Options[i]; o.Compat == compat {
			helpEntry(out, "--"+o.Name, o.Doc+" ("+o.values()+")")
		}
	}
}

// values describes the legal values, their unit and the default.
func (o *Option) values() string {
	def := "default " + o.Default
	if o.Default == "" {
		def = `default ""`
	}
	if legal := strings.TrimSpace(o.Legal() + " " + o.Unit); legal != "" {
		return legal + "; " + def
	}
	return def
}

// helpEntry writes a description beside a name, or below it if the name is long.
func helpEntry(out *strings.Builder, name, text string) {
	line := fmt.Sprintf("%-*s", helpIndent, name)
	if len(name) >= helpIndent {
		out.WriteString(name + "\n")
		line = strings.Repeat(" ", helpIndent)
	}
	empty := true // no word is in the line yet
	for word := range strings.FieldsSeq(text) {
		if !empty {
			if len(line)+1+len(word) <= helpWidth {
				line += " " + word
				continue
			}
			out.WriteString(line + "\n")
			line = strings.Repeat(" ", helpIndent)
		}
		line += word
		empty = false
	}
	out.WriteString(line + "\n")
}
