package commands

import (
	"slices"

	"mayfly/commands/redisfmt"
)

// secretOptions are the options whose values nobody must see who may see commands.
var secretOptions = []string{"requirepass"}

func isSecretOption(option string) bool {
	return slices.ContainsFunc(secretOptions, func(name string) bool { return redisfmt.EqualFold(name, option) })
}

// redacted gives the arguments of a command with passwords made unreadable, for MONITOR and SLOWLOG.
func redacted(r *row, args []string) []string {
	shown := args
	hide := func(i int) {
		if i >= len(args) {
			return
		}
		if &shown[0] == &args[0] {
			shown = slices.Clone(args)
		}
		shown[i] = "(redacted)"
	}
	switch r.full {
	case "auth":
		for i := 1; i < len(args); i++ {
			hide(i)
		}
	case "hello":
		for i := 2; i < len(args); i++ {
			if redisfmt.EqualFold(args[i], "AUTH") {
				hide(i + 1)
				hide(i + 2)
				i += 2
			}
		}
	case "config|set":
		for i := 2; i < len(args); i += 2 {
			if isSecretOption(args[i]) {
				hide(i + 1)
			}
		}
	}
	return shown
}
