package admin

import (
	"fmt"
	"strconv"
	"strings"

	"mayfly/commands/engine"
	"mayfly/commands/items"
)

// RedisVersion is the version of Redis whose semantics the commands have.
const RedisVersion = "7.0.15"

// ServerCommands are about the server as a whole.
var ServerCommands = []engine.Command{
	commandCommand,
	configCommand,
	{
		Name: "info", Syntax: "[section [section ...]]", Since: "1.0.0", Summary: "Get information and statistics about the server",
		Differs: "Has only figures that apply, and more of them: containers that are not empty, the purge, the journal. Figures of missing features, such as replicas, are left out",
		Flags:   engine.Loading | engine.Stale | engine.OnNode, Scope: engine.ScopeSweep, Categories: "dangerous",
		Tips:    "nondeterministic_output request_policy:all_shards response_policy:special",
		Touches: engine.TouchesVisible, Parse: parseInfo,
	},
	{
		Name: "time", Since: "2.6.0", Summary: "Return the current server time",
		Differs: "Never runs backwards",
		Flags:   engine.Loading | engine.Stale | engine.Fast | engine.OnNode, Tips: "nondeterministic_output", Parse: engine.NoParse(runTime),
	},
}

// runTime is TIME: seconds, and microseconds within the second, by the clock that items die by. As in
// Redis it reads the clock even within EXEC.
func runTime(x *engine.Context) engine.Reply {
	if x.Session.Service == engine.ServeDetached {
		now := x.Engine.Micros()
		return engine.Bulks(strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10))
	}
	now := x.Tx.Micros()
	return engine.Bulks(strconv.FormatInt(now/1e6, 10), strconv.FormatInt(now%1e6, 10))
}

// configCommand reads and changes the options, which the Host keeps.
var configCommand = engine.Command{
	Name: "config", Since: "2.0.0", Summary: "A container for server configuration commands",
	Sub: []engine.Command{
		{
			Name: "get", Syntax: "parameter [parameter ...]", Summary: "Get the values of configuration parameters",
			Differs: "Other [options](configuration.md)",
			Flags:   engine.Admin | engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Parse: parseConfigGet,
		},
		engine.HelpRow("config", "5.0.0"),
		{
			Name: "resetstat", Summary: "Reset the stats returned by INFO",
			Differs: "Resets the figures of the purge too, but for the longest cycle",
			Flags:   engine.Admin | engine.NoScript | engine.Loading | engine.Stale | engine.OnNode,
			Parse: engine.NoParse(func(x *engine.Context) engine.Reply {
				x.Engine.ResetStatistics()
				return engine.OK
			}),
		},
		{
			Name: "rewrite", Since: "2.8.0", Summary: "Rewrite the configuration file with the in memory configuration",
			Differs: "Writes mayfly's options",
			Flags:   engine.Admin | engine.NoScript | engine.Loading | engine.Stale | engine.OnNode,
			Parse:   engine.NoParse(func(x *engine.Context) engine.Reply { return okReply(x.Engine.Host.ConfigRewrite()) }),
		},
		{
			Name: "set", Syntax: "parameter value [parameter value ...]", Summary: "Set configuration parameters to the given values",
			Differs: "Other [options](configuration.md); an unknown one is an error",
			Flags:   engine.Admin | engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Tips: "request_policy:all_nodes response_policy:all_succeeded",
			Parse: parseConfigSet, Secrets: configSecrets,
		},
	},
}

func parseConfigGet(in *engine.Input) (engine.Run, error) {
	patterns := in.Args[2:]
	for _, pattern := range patterns {
		if err := engine.CheckPattern(pattern); err != nil {
			return nil, err
		}
	}
	return func(x *engine.Context) engine.Reply {
		var found []engine.Reply
		for _, option := range x.Engine.Host.ConfigGet(patterns) {
			if option[0] == "databases" && x.Session.Service != engine.ServeDetached {
				option[1] = fmt.Sprint(x.Tx.HighestDB() + 1) // programs offer the numbers below
			}
			found = append(found, engine.Bulk(option[0]), engine.Bulk(option[1]))
		}
		return engine.Map(found...)
	}, nil
}

func parseConfigSet(in *engine.Input) (engine.Run, error) {
	args := in.Args[2:]
	if len(args)%2 != 0 {
		return nil, engine.ErrSyntax
	}
	pairs := make([][2]string, 0, len(args)/2)
	for i := 0; i < len(args); i += 2 {
		pairs = append(pairs, [2]string{strings.Clone(args[i]), strings.Clone(args[i+1])})
	}
	return func(x *engine.Context) engine.Reply {
		if err := x.Engine.Host.ConfigSet(pairs); err != nil {
			return engine.Fail(err)
		}
		logConfigSet(x, pairs)
		x.EvictExcess(pairs)
		return engine.OK
	}, nil
}

func configSecrets(args []string) (secrets []int) {
	for i := 2; i < len(args); i += 2 {
		if engine.IsSecretOption(args[i]) {
			secrets = append(secrets, i+1)
		}
	}
	return secrets
}

// logConfigSet logs changed options, without passwords.
func logConfigSet(x *engine.Context, pairs [][2]string) {
	ok, skipped := x.Engine.ConfigLog.Allow()
	if !ok {
		return
	}
	var options []string
	for _, pair := range pairs {
		if engine.IsSecretOption(pair[0]) {
			pair[1] = "(redacted)"
		}
		options = append(options, pair[0]+" "+engine.Truncate(pair[1]))
	}
	x.Engine.Log.Info().Strs("options", options).Str("addr", x.Session.Addr).Int("suppressed", skipped).Msg("CONFIG SET changed options")
}

// ModuleCommand is what graphical clients and some libraries send first. There are no modules.
var ModuleCommand = engine.Command{
	Name: "module", Since: "4.0.0", Summary: "A container for module commands",
	Sub: []engine.Command{
		engine.HelpRow("module", "5.0.0"),
		{
			Name: "list", Summary: "List all modules loaded by the server",
			Differs: "Names ReJSON, whose commands are built in",
			Flags:   engine.Admin | engine.NoScript | engine.OnNode, Tips: "nondeterministic_output_order",
			Parse: engine.NoParse(func(*engine.Context) engine.Reply { return modules() }),
		},
	},
}

// moduleName and moduleVersion name RedisJSON 8.6.0, whose commands JSON.* are.
const (
	moduleName    = "ReJSON"
	moduleVersion = 80600
)

// modules is the reply of MODULE LIST and a part of HELLO's. Clients and tools ask it whether a server has
// JSON.*.
func modules() engine.Reply {
	return engine.Array(engine.Map(engine.Bulk("name"), engine.Bulk(moduleName), engine.Bulk("ver"), engine.Integer(moduleVersion), engine.Bulk("path"), engine.Bulk(""), engine.Bulk("args"), engine.Array()))
}

// unsaved returns why a shutdown would lose writes, or nil. A node of a cluster loses none: what a majority
// has not committed was not acknowledged.
func unsaved(x *engine.Context) error {
	if x.Engine.Cluster != nil {
		return nil
	}
	return x.Engine.Keyspace().Unsaved()
}

// ShutdownCommand ends the server as SIGTERM does: running commands finish, and all data are forced to
// disk. There is no snapshot to save and no replica to wait for, so most options of Redis have no effect.
// While the disk refuses writes a shutdown loses data, so it needs FORCE or NOSAVE.
var ShutdownCommand = engine.Command{
	Name: "shutdown", Syntax: "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]", Since: "1.0.0",
	Summary: "Synchronously save the dataset to disk and then shut down the server",
	Differs: "Loses nothing, whichever word follows; while the disk fails it takes FORCE or NOSAVE",
	Flags:   engine.Admin | engine.NoScript | engine.Loading | engine.Stale | engine.NoMulti | engine.AllowBusy | engine.OnNode, Parse: parseShutdown,
}

func parseShutdown(in *engine.Input) (engine.Run, error) {
	var save, nosave, now, force, abort bool
	options := map[string]*bool{"SAVE": &save, "NOSAVE": &nosave, "NOW": &now, "FORCE": &force, "ABORT": &abort}
	if !items.ParseFlags(in.Args[1:], options) || save && nosave || abort && (save || nosave || now || force) {
		return nil, engine.ErrSyntax
	}
	return func(x *engine.Context) engine.Reply {
		if abort { // a shutdown starts at once and cannot be aborted
			return engine.Fail(errNoShutdown)
		}
		if !nosave && x.Engine.Pause.IsBusy() {
			return engine.Fail(engine.ErrBusy)
		}
		if err := unsaved(x); err != nil && !force && !nosave {
			x.Engine.Log.Error().Err(err).Msg("SHUTDOWN refused: it would lose writes that are not on disk; use FORCE to shut down anyway")
			return engine.Fail(engine.ErrShutdown)
		}
		x.Engine.Log.Info().Int64("client", x.Session.ID).Str("addr", x.Session.Addr).Msg("SHUTDOWN")
		x.Engine.Host.Shutdown()
		x.Close = true
		return engine.Reply{} // as in Redis the client sees only the end of the connection
	}, nil
}
