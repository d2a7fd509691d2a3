package commands

import "strings"

// configCommand reads and changes the server's options, which the server around the engine keeps.
var configCommand = Command{
	Name: "config", Summary: "A container for server configuration commands",
	Group: "server", Since: "2.0.0", Arity: -2,
	Sub: []Command{
		{
			Name: "get", Syntax: "parameter [parameter ...]", Summary: "Get the values of configuration parameters",
			Group: "server", Since: "2.0.0", Arity: -3, Flags: Admin | NoScript | Loading | Stale,
			Differs: "Other [options](configuration.md)",
			Parse:   parseConfigGet,
		},
		helpRow("config", "server"),
		{
			Name: "resetstat", Summary: "Reset the stats returned by INFO",
			Group: "server", Since: "2.0.0", Arity: 2, Flags: Admin | NoScript | Loading | Stale,
			Differs: "Resets the figures of the purge too",
			Parse: just(func(x *Context) Reply {
				x.Engine.resetStatistics()
				return OK
			}),
		},
		{
			Name: "rewrite", Summary: "Rewrite the configuration file with the in memory configuration",
			Group: "server", Since: "2.8.0", Arity: 2, Flags: Admin | NoScript | Loading | Stale,
			Differs: "Writes mayfly's options",
			Parse:   just(func(x *Context) Reply { return done(x.Engine.Host.ConfigRewrite()) }),
		},
		{
			Name: "set", Syntax: "parameter value [parameter value ...]", Summary: "Set configuration parameters to the given values",
			Group: "server", Since: "2.0.0", Arity: -4, Flags: Admin | NoScript | Loading | Stale,
			Tips:    "request_policy:all_nodes response_policy:all_succeeded",
			Differs: "Other [options](configuration.md); an unknown one is an error",
			Parse:   parseConfigSet,
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
		err := x.Engine.Host.ConfigSet(pairs)
		if yes, skipped := x.Engine.configured.Now(); err == nil && yes {
			var options []string
			for _, pair := range pairs {
				if isSecretOption(pair[0]) {
					pair[1] = "(redacted)"
				}
				options = append(options, pair[0]+" "+cut(pair[1]))
			}
			x.Engine.Log.Info().Strs("options", options).Str("addr", x.Session.Addr).Int("others_like_it", skipped).Msg("options were changed by CONFIG SET")
		}
		return done(err)
	}, nil
}
