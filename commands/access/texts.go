package access

import "strings"

// The reasons in the errors of EXEC and of scripts, in the words of Redis 7.0.
var (
	execReasons = [reasons]string{
		DeniedCommand: "no permission to execute the command or subcommand", DeniedKey: "no permission to touch the specified keys",
		DeniedChannel: "no permission to access one of the channels used as arguments", DeniedContainer: "no permission to access the database",
	}
	scriptReasons = [reasons]string{
		DeniedCommand: "can't run this command or subcommand", DeniedKey: "can't access at least one of the keys mentioned in the command arguments",
		DeniedChannel: "can't publish to the channel mentioned in the command", DeniedContainer: "can't access the database",
	}
)

// Text is the error of a command that the verdict refuses, in the words of Redis 7.0, and of Valkey for
// containers.
func (v Verdict) Text(command string, in Context) string {
	switch {
	case in == InScript:
		return "ERR The user executing the script " + scriptReasons[v.Reason]
	case v.Reason == DeniedCommand:
		return "NOPERM this user has no permissions to run the '" + command + "' command"
	case v.Reason == DeniedKey:
		return "NOPERM this user has no permissions to access one of the keys used as arguments"
	case v.Reason == DeniedChannel:
		return "NOPERM this user has no permissions to access one of the channels used as arguments"
	}
	return "NOPERM No permissions to access database"
}

// ExecText is the error of a command that was queued, and that the verdict refuses when EXEC runs it.
func (v Verdict) ExecText() string {
	return "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. " +
		"This command is no longer allowed for the following reason: " + execReasons[v.Reason]
}

// Needs reads the flags of Redis' key specifications: what a command needs of all keys, or of each if they
// differ.
func Needs(keys string) (needs []Permission) {
	if keys == "" || keys == "not_key" {
		return nil
	}
	for of := range strings.SplitSeq(keys, ",") {
		var p Permission
		for word := range strings.FieldsSeq(of) {
			switch word {
			case "access":
				p |= Read
			case "insert", "update", "delete":
				p |= Write
			}
		}
		needs = append(needs, p)
	}
	return needs
}
