package commands

import (
	"mayfly/commands/admin"
	"mayfly/commands/containers"
	"mayfly/commands/documents"
	"mayfly/commands/engine"
	"mayfly/commands/hashes"
	"mayfly/commands/jsons"
	"mayfly/commands/keys"
	"mayfly/commands/lists"
	"mayfly/commands/nodes"
	"mayfly/commands/queries"
	"mayfly/commands/scripting"
	"mayfly/commands/sets"
	"mayfly/commands/sortedsets"
	"mayfly/commands/streams"
	"mayfly/commands/users"
)

func init() {
	engine.Install(families)
	engine.Catalogue = admin.NewCatalogue()
}

// families are the commands, family by family.
var families = []engine.Family{
	{Group: "connection", Since: "", Touches: engine.TouchesNone, Commands: admin.ConnectionCommands},
	{Group: "string", Since: "", Touches: engine.TouchesSelected, Commands: keys.StringCommands},
	{Group: "string", Since: "", Touches: engine.TouchesSelected, Commands: keys.RangeCommands},
	{Group: "string", Since: "", Touches: engine.TouchesSelected, Commands: []engine.Command{keys.LCSCommand}},
	{Group: "hash", Since: "", Touches: engine.TouchesSelected, Commands: hashes.Commands},
	{Group: "hash", Since: "", Touches: engine.TouchesSelected, Commands: hashes.EndCommands},
	{Group: "set", Since: "", Touches: engine.TouchesSelected, Commands: sets.Commands},
	{Group: "sorted-set", Since: "", Touches: engine.TouchesSelected, Commands: sortedsets.Commands},
	{Group: "sorted-set", Since: "", Touches: engine.TouchesSelected, Commands: sortedsets.RangeCommands},
	{Group: "sorted-set", Since: "", Touches: engine.TouchesSelected, Commands: sortedsets.AlgebraCommands},
	{Group: "sorted-set", Since: "", Touches: engine.TouchesSelected, Commands: sortedsets.PopCommands},
	{Group: "list", Since: "", Touches: engine.TouchesSelected, Commands: lists.Commands},
	{Group: "list", Since: "", Touches: engine.TouchesSelected, Commands: lists.MoveCommands},
	{Group: "generic", Since: "", Touches: engine.TouchesSelected, Commands: keys.KeyCommands},
	{Group: "generic", Since: "", Touches: engine.TouchesSelected, Commands: keys.MoveCommands},
	{Group: "generic", Since: "", Touches: engine.TouchesSelected, Commands: []engine.Command{keys.ObjectCommand}},
	{Group: "generic", Since: "", Touches: engine.TouchesSelected, Commands: keys.ExpireCommands},
	{Group: "transactions", Since: "", Touches: engine.TouchesNone, Commands: engine.TransactionCommands},
	{Group: "pubsub", Since: "", Touches: engine.TouchesNone, Commands: admin.PubsubCommands},
	{Group: "container", Since: engine.SinceFirst, Touches: engine.TouchesNamed, Commands: containers.ContainerCommands},
	{Group: "container", Since: engine.SinceFirst, Touches: engine.TouchesNamed, Commands: containers.ForesightCommands},
	{Group: "container", Since: engine.SinceFirst, Touches: engine.TouchesNamed, Commands: containers.UndoCommands},
	{Group: "document", Since: engine.SinceFirst, Touches: engine.TouchesNamed, Commands: documents.DocumentCommands},
	{Group: "document", Since: engine.SinceFirst, Touches: engine.TouchesNamed, Commands: []engine.Command{containers.ExplainCommand, streams.ReviveCommand}},
	{Group: "document", Since: engine.SinceFirst, Touches: engine.TouchesNamed, Commands: queries.QueryCommands},
	{Group: "document", Since: engine.SinceFirst, Touches: engine.TouchesNamed, Commands: containers.IndexCommands},
	{Group: "json", Since: "", Touches: engine.TouchesSelected, Commands: jsons.JSONCommands},
	{Group: "server", Since: "", Touches: engine.TouchesNone, Commands: admin.ServerCommands},
	{Group: "server", Since: "", Touches: engine.TouchesNone, Commands: []engine.Command{admin.ClockCommand, admin.SlowlogCommand, admin.LatencyCommand, admin.MonitorCommand, admin.MemoryCommand, admin.ShutdownCommand}},
	{Group: "server", Since: "", Touches: engine.TouchesNone, Commands: admin.PersistenceCommands},
	{Group: "server", Since: "", Touches: engine.TouchesNone, Commands: []engine.Command{users.ACLCommand, admin.ModuleCommand, nodes.RoleCommand}},
	{Group: "stream", Since: "", Touches: engine.TouchesStreams, Commands: streams.StreamCommands},
	{Group: "stream", Since: "", Touches: engine.TouchesStreams, Commands: streams.GroupCommands},
	{Group: "cluster", Since: "", Touches: engine.TouchesNone, Commands: nodes.ClusterCommands},
	{Group: "generic", Since: "", Touches: engine.TouchesNone, Commands: []engine.Command{nodes.WaitCommand, nodes.WaitAOFCommand}},
	{Group: "sentinel", Since: "", Touches: engine.TouchesNone, Commands: []engine.Command{nodes.SentinelCommand}},
	{Group: "scripting", Since: "", Touches: engine.TouchesNone, Commands: scripting.ScriptCommands},
}
