package commands

import "strings"

// helpRow is the row of HELP of a command with subcommands.
func helpRow(command, group string) Command {
	return Command{
		Name: "help", Summary: "Show helpful text about the different subcommands",
		Group: group, Since: "5.0.0", Arity: 2, Flags: Loading | Stale,
		Differs: "Its text is generated from the table of commands",
		Parse:   just(func(*Context) Reply { return help(table[command]) }),
	}
}

// help lists a command's subcommands from their rows, in the layout of Redis.
func help(r *row) Reply {
	lines := []Reply{Status(strings.ToUpper(r.Name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")}
	if r.Parse != nil {
		lines = append(lines, Status("(no subcommand)"), Status("    "+r.Summary))
	}
	for _, sub := range r.sorted {
		lines = append(lines,
			Status(strings.TrimSpace(strings.ToUpper(sub.Name)+" "+sub.Syntax)),
			Status("    "+sub.Summary))
	}
	return Array(lines...)
}
