package commands

import (
	"mayfly/commands/admin"
	"mayfly/commands/containers"
	"mayfly/commands/documents"
	"mayfly/commands/engine"
	"mayfly/commands/jsons"
	"mayfly/commands/keys"
	"mayfly/commands/nodes"
	"mayfly/commands/queries"
	"mayfly/commands/scripting"
	"mayfly/commands/streams"
)

func init() { engine.Install(families) }

// families are the commands, family by family.
var families = []engine.Family{
	{Group: "connection", Since: "", Commands: admin.ConnectionCommands},
	{Group: "string", Since: "", Commands: keys.StringCommands},
	{Group: "string", Since: "", Commands: keys.RangeCommands},
	{Group: "string", Since: "", Commands: []engine.Command{keys.LCSCommand}},
	{Group: "generic", Since: "", Commands: keys.KeyCommands},
	{Group: "generic", Since: "", Commands: keys.MoveCommands},
	{Group: "generic", Since: "", Commands: []engine.Command{keys.ObjectCommand}},
	{Group: "generic", Since: "", Commands: keys.ExpireCommands},
	{Group: "transactions", Since: "", Commands: engine.TransactionCommands},
	{Group: "pubsub", Since: "", Commands: admin.PubsubCommands},
	{Group: "container", Since: engine.SinceFirst, Commands: containers.ContainerCommands},
	{Group: "container", Since: engine.SinceFirst, Commands: containers.ForesightCommands},
	{Group: "container", Since: engine.SinceFirst, Commands: containers.UndoCommands},
	{Group: "document", Since: engine.SinceFirst, Commands: documents.DocumentCommands},
	{Group: "document", Since: engine.SinceFirst, Commands: []engine.Command{containers.ExplainCommand, streams.ReviveCommand}},
	{Group: "document", Since: engine.SinceFirst, Commands: queries.QueryCommands},
	{Group: "document", Since: engine.SinceFirst, Commands: containers.IndexCommands},
	{Group: "json", Since: "", Commands: jsons.JSONCommands},
	{Group: "server", Since: "", Commands: admin.ServerCommands},
	{Group: "server", Since: "", Commands: []engine.Command{admin.ClockCommand, admin.SlowlogCommand, admin.LatencyCommand, admin.MonitorCommand, admin.MemoryCommand, admin.ShutdownCommand}},
	{Group: "server", Since: "", Commands: admin.PersistenceCommands},
	{Group: "server", Since: "", Commands: []engine.Command{admin.ACLCommand, admin.ModuleCommand, nodes.RoleCommand}},
	{Group: "stream", Since: "", Commands: streams.StreamCommands},
	{Group: "stream", Since: "", Commands: streams.GroupCommands},
	{Group: "cluster", Since: "", Commands: nodes.ClusterCommands},
	{Group: "generic", Since: "", Commands: []engine.Command{nodes.WaitCommand}},
	{Group: "sentinel", Since: "", Commands: []engine.Command{nodes.SentinelCommand}},
	{Group: "scripting", Since: "", Commands: scripting.ScriptCommands},
}
