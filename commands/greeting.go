package commands

// What programs with windows, and some libraries, ask of a server before they do anything else. Of ACL and
// MODULE there is nothing more: the one user may do everything, and there are no modules.

var aclCommand = Command{
	Name: "acl", Summary: "A container for Access List Control commands ",
	Group: "server", Since: "6.0.0", Arity: -2,
	Sub: []Command{
		withSince(helpRow("acl", "server"), "6.0.0"),
		{
			Name: "whoami", Summary: "Return the name of the user associated to the current connection",
			Group: "server", Since: "6.0.0", Arity: 2, Flags: NoScript | Loading | Stale,
			Differs: "There is only one user",
			Parse:   just(func(*Context) Reply { return Bulk(defaultUser) }),
		},
	},
}

var moduleCommand = Command{
	Name: "module", Summary: "A container for module commands",
	Group: "server", Since: "4.0.0", Arity: -2,
	Sub: []Command{
		withSince(helpRow("module", "server"), "5.0.0"),
		{
			Name: "list", Summary: "List all modules loaded by the server",
			Group: "server", Since: "4.0.0", Arity: 2, Flags: Admin | NoScript, Tips: "nondeterministic_output_order",
			Differs: "There are none",
			Parse:   just(func(*Context) Reply { return Array() }),
		},
	},
}
