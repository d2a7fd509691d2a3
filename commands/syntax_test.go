package commands

import (
	"strings"
	"testing"

	"mayfly/commands/engine"
)

// Writing the parsed syntax of a row again gives the same text.
func TestSyntaxOfRows(t *testing.T) {
	t.Parallel()
	var check func([]*engine.Row)
	check = func(list []*engine.Row) {
		for _, r := range list {
			args, err := engine.ParseSyntax(r.Syntax)
			if err != nil {
				t.Errorf("%s: %v", r.FullName, err)
			} else if got := writeSyntax(args, " "); got != r.Syntax {
				t.Errorf("%s: the syntax\n%s\nreads as\n%s", r.FullName, r.Syntax, got)
			}
			check(r.SortedSubcommands)
		}
	}
	check(engine.TableSorted)
}

func writeSyntax(args []engine.Argument, between string) string {
	var out []string
	for _, a := range args {
		text := a.Name
		switch a.Kind {
		case engine.KindToken:
			text = a.Token
		case engine.KindOneOf:
			if text = writeSyntax(a.Args, " | "); !a.Optional || a.Token != "" {
				text = "<" + text + ">"
			}
		case engine.KindBlock:
			text = writeSyntax(a.Args, " ")
		}
		if a.Token != "" && a.Kind != engine.KindToken && !a.RepeatsToken {
			text, a.Token = a.Token+" "+withRepeats(text, a), ""
		} else {
			if a.RepeatsToken {
				text = a.Token + " " + text
			}
			text = withRepeats(text, a)
		}
		if a.Optional {
			text = "[" + text + "]"
		}
		out = append(out, text)
	}
	return strings.Join(out, between)
}

func withRepeats(text string, a engine.Argument) string {
	if a.Multiple {
		return text + " [" + text + " ...]"
	}
	return text
}
