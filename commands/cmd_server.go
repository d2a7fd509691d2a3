package commands

import (
	"fmt"
	"strconv"
	"strings"
)

// RedisVersion is the version of Redis whose semantics the commands have.
const RedisVersion = "7.0.15"

// serverCommands are about the server as a whole.
var serverCommands = []Command{
	commandCommand,
	configCommand,
	{
		Name: "info", Syntax: "[section [section ...]]", Since: "1.0.0", Summary: "Get information and statistics about the server",
		Differs: "Has only figures that apply, and more of them: containers that are not empty, the purge, the journal. Figures of missing features, such as replicas, are left out",
		Flags:   Loading | Stale | OnNode, Scope: ScopeSweep, Categories: "dangerous",
		Tips:  "nondeterministic_output request_policy:all_shards response_policy:special",
		Parse: parseInfo,
	},
	{
		Name: "time", Since: "2.6.0", Summary: "Return the current server time",
		Differs: "Never runs backwards",
		Flags:   Loading | Stale | Fast | OnNode, Tips: "nondeterministic_output", Parse: noParse(runTime),
	},
}

// runTime is TIME: seconds, and microseconds within the second, by the clock that items die by. As in
// Redis it reads the clock even within EXEC.
func runTime(x *Context) Reply {
	if x.Session.service == serveDetached {
		now := x.Engine.Micros()
		return Bulks(strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10))
	}
	now := x.Tx.Micros()
	return Bulks(strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10))
}

// configCommand reads and changes the options, which the Host keeps.
var configCommand = Command{
	Name: "config", Since: "2.0.0", Summary: "A container for server configuration commands",
	Sub: []Command{
		{
			Name: "get", Syntax: "parameter [parameter ...]", Summary: "Get the values of configuration parameters",
			Differs: "Other [options](configuration.md)",
			Flags:   Admin | NoScript | Loading | Stale | OnNode, Parse: parseConfigGet,
		},
		helpRow("config", "5.0.0"),
		{
			Name: "resetstat", Summary: "Reset the stats returned by INFO",
			Differs: "Resets the figures of the purge too",
			Flags:   Admin | NoScript | Loading | Stale | OnNode,
			Parse: noParse(func(x *Context) Reply {
				x.Engine.resetStatistics()
				return OK
			}),
		},
		{
			Name: "rewrite", Since: "2.8.0", Summary: "Rewrite the configuration file with the in memory configuration",
			Differs: "Writes mayfly's options",
			Flags:   Admin | NoScript | Loading | Stale | OnNode,
			Parse:   noParse(func(x *Context) Reply { return okReply(x.Engine.Host.ConfigRewrite()) }),
		},
		{
			Name: "set", Syntax: "parameter value [parameter value ...]", Summary: "Set configuration parameters to the given values",
			Differs: "Other [options](configuration.md); an unknown one is an error",
			Flags:   Admin | NoScript | Loading | Stale | OnNode, Tips: "request_policy:all_nodes response_policy:all_succeeded",
			Parse: parseConfigSet, Secrets: configSecrets,
		},
	},
}

func parseConfigGet(in *Input) (Run, error) {
	patterns := in.Args[2:]
	for _, pattern := range patterns {
		if err := checkPattern(pattern); err != nil {
			return nil, err
		}
	}
	return func(x *Context) Reply {
		var found []Reply
		for _, option := range x.Engine.Host.ConfigGet(patterns) {
			if option[0] == "databases" && x.Session.service != serveDetached {
				option[1] = fmt.Sprint(x.Tx.HighestDB() + 1) // programs offer the numbers below
			}
			found = append(found, Bulk(option[0]), Bulk(option[1]))
		}
		return Map(found...)
	}, nil
}

func parseConfigSet(in *Input) (Run, error) {
	args := in.Args[2:]
	if len(args)%2 != 0 {
		return nil, errSyntax
	}
	pairs := make([][2]string, 0, len(args)/2)
	for i := 0; i < len(args); i += 2 {
		pairs = append(pairs, [2]string{strings.Clone(args[i]), strings.Clone(args[i+1])})
	}
	return func(x *Context) Reply {
		if err := x.Engine.Host.ConfigSet(pairs); err != nil {
			return Fail(err)
		}
		x.logConfigSet(pairs)
		x.evictExcess(pairs)
		return OK
	}, nil
}

func configSecrets(args []string) (secrets []int) {
	for i := 2; i < len(args); i += 2 {
		if IsSecretOption(args[i]) {
			secrets = append(secrets, i+1)
		}
	}
	return secrets
}

// logConfigSet logs changed options, without passwords.
func (x *Context) logConfigSet(pairs [][2]string) {
	ok, skipped := x.Engine.configLog.Allow()
	if !ok {
		return
	}
	var options []string
	for _, pair := range pairs {
		if IsSecretOption(pair[0]) {
			pair[1] = "(redacted)"
		}
		options = append(options, pair[0]+" "+truncate(pair[1]))
	}
	x.Engine.Log.Info().Strs("options", options).Str("addr", x.Session.Addr).Int("suppressed", skipped).Msg("CONFIG SET changed options")
}

// The commands that graphical clients and some libraries send first. There is one user, who may do
// everything, and there are no modules. Without a cluster, CLUSTER and ROLE reply as a single Redis does.

var aclCommand = Command{
	Name: "acl", Since: "6.0.0", Summary: "A container for Access List Control commands ",
	Sub: []Command{
		{
			Name: "cat", Syntax: "[categoryname]", Since: "6.0.0",
			Summary: "List the ACL categories or the commands inside a category",
			Differs: "Names mayfly's categories and commands",
			Flags:   NoScript | Loading | Stale | OnNode, Parse: parseACLCat,
		},
		helpRow("acl", "6.0.0"),
		{
			Name: "whoami", Summary: "Return the name of the user associated to the current connection",
			Differs: "There is only one user",
			Flags:   NoScript | Loading | Stale | OnNode, Parse: noParse(func(*Context) Reply { return Bulk(defaultUser) }),
		},
	},
}

var moduleCommand = Command{
	Name: "module", Since: "4.0.0", Summary: "A container for module commands",
	Sub: []Command{
		helpRow("module", "5.0.0"),
		{
			Name: "list", Summary: "List all modules loaded by the server",
			Differs: "Names ReJSON, whose commands are built in",
			Flags:   Admin | NoScript | OnNode, Tips: "nondeterministic_output_order",
			Parse: noParse(func(*Context) Reply { return modules() }),
		},
	},
}

// moduleName and moduleVersion name RedisJSON 8.6.0, whose commands JSON.* are.
const (
	moduleName    = "ReJSON"
	moduleVersion = 80600
)

// modules is the reply of MODULE LIST and a part of HELLO's. Clients and tools ask it whether a server has JSON.*.
func modules() Reply {
	return Array(Map(Bulk("name"), Bulk(moduleName), Bulk("ver"), Integer(moduleVersion), Bulk("path"), Bulk(""), Bulk("args"), Array()))
}

var roleCommand = Command{
	Name: "role", Since: "2.8.12", Summary: "Return the role of the instance in the context of replication",
	Flags: NoScript | Loading | Stale | Fast | OnNode, Categories: "admin dangerous",
	Parse: noParse(runRole),
}

// unsaved returns why a shutdown would lose writes, or nil. A node of a cluster loses none: what a majority has not
// committed was not acknowledged.
func (x *Context) unsaved() error {
	if x.Engine.Cluster != nil {
		return nil
	}
	return x.Engine.Keyspace().Unsaved()
}

// shutdownCommand ends the server as SIGTERM does: running commands finish, and all data are forced to
// disk. There is no snapshot to save and no replica to wait for, so most options of Redis have no effect.
// While the disk refuses writes a shutdown loses data, so it needs FORCE or NOSAVE.
var shutdownCommand = Command{
	Name: "shutdown", Syntax: "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]", Since: "1.0.0",
	Summary: "Synchronously save the dataset to disk and then shut down the server",
	Differs: "Loses nothing, whichever word follows; while the disk fails it takes FORCE or NOSAVE",
	Flags:   Admin | NoScript | Loading | Stale | NoMulti | AllowBusy | OnNode, Parse: parseShutdown,
}

func parseShutdown(in *Input) (Run, error) {
	var save, nosave, now, force, abort bool
	options := map[string]*bool{"SAVE": &save, "NOSAVE": &nosave, "NOW": &now, "FORCE": &force, "ABORT": &abort}
	if !parseFlags(in.Args[1:], options) || save && nosave || abort && (save || nosave || now || force) {
		return nil, errSyntax
	}
	return func(x *Context) Reply {
		if abort { // a shutdown starts at once and cannot be aborted
			return Fail(errNoShutdown)
		}
		if !nosave && x.Engine.pause.isBusy() {
			return Fail(errBusy)
		}
		if err := x.unsaved(); err != nil && !force && !nosave {
			x.Engine.Log.Error().Err(err).Msg("SHUTDOWN refused: it would lose writes that are not on disk; use FORCE to shut down anyway")
			return Fail(errShutdown)
		}
		x.Engine.Log.Info().Int64("client", x.Session.ID).Str("addr", x.Session.Addr).Msg("SHUTDOWN")
		x.Engine.Host.Shutdown()
		x.close = true
		return Reply{} // as in Redis the client sees only the end of the connection
	}, nil
}
