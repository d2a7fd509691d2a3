package commands

import (
	"strings"
	"testing"

	"mayfly/commands/engine"
	"mayfly/commands/syntax"
)

// Writing the parsed syntax of a row again gives the same text.
func TestSyntaxOfRows(t *testing.T) {
	t.Parallel()
	var check func([]*engine.Row)
	check = func(list []*engine.Row) {
		for _, r := range list {
			args, err := syntax.Parse(r.Syntax)
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

func writeSyntax(args []syntax.Argument, between string) string {
	var out []string
	for _, a := range args {
		text := a.Name
		switch a.Kind {
		case syntax.KindToken:
			text = a.Token
		case syntax.KindOneOf:
			if text = writeSyntax(a.Args, " | "); !a.Optional || a.Token != "" {
				text = "<" + text + ">"
			}
		case syntax.KindBlock:
			text = writeSyntax(a.Args, " ")
		}
		if a.Token != "" && a.Kind != syntax.KindToken && !a.RepeatsToken {
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

func withRepeats(text string, a syntax.Argument) string {
	if a.Multiple {
		return text + " [" + text + " ...]"
	}
	return text
}
