package admin

import "mayfly/commands/engine"

var MonitorCommand = engine.Command{
	Name: "monitor", Since: "1.0.0", Summary: "Listen for all requests received by the server in real time",
	Differs: "A client that does not keep up is disconnected",
	Flags:   engine.Admin | engine.NoScript | engine.Loading | engine.Stale | engine.OnNode, Touches: engine.TouchesAll, Parse: engine.NoParse(runMonitor),
}

// runMonitor starts to show the session all commands. As in Redis, a repeated MONITOR has no reply.
func runMonitor(x *engine.Context) engine.Reply {
	s := x.Session
	if s.Multi.Open {
		return engine.Fail(errMonitorInMulti)
	}
	if s.Monitoring {
		return engine.Reply{}
	}
	x.Engine.Broker.StartMonitoring(s)
	return engine.OK
}
