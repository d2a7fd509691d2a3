package documents

import (
	"mayfly/commands/engine"
	"mayfly/commands/items"
)

// The commands on documents. Their Runs are in read.go and write.go.
//
// An id may name a plain key (SET) instead of a document. A command on one id then answers WRONGTYPE;
// DOC.PUT, too, overwrites no plain key. Commands on several ids, counts and scans skip plain keys.
var DocumentCommands = []engine.Command{
	{
		Name: "doc.put", Syntax: "container id json [TTL <-1 | seconds | NULL>] [NX | XX] [IFMATCH etag] [TS milliseconds]",
		Summary: "Stores a document, a JSON object, and starts its clock. TTL writes the member ttl into it. TS keeps the time at which it was written elsewhere, and returns null if it is dead by now or was written later here.",
		Flags:   engine.Write | engine.DenyOOM, Keys: engine.OneID, Parse: parseDocPut,
	},
	{
		Name: "doc.get", Syntax: "container id [WITHMETA] [PATH path [path ...]]",
		Summary: "Returns a document, or the values at one or several paths in it. WITHMETA adds _ts, the time of the last write in seconds, and _etag.",
		Flags:   engine.ReadOnly | engine.Fast, Keys: engine.OneID, Walks: engine.IfLonger(3), Parse: parseDocGet,
	},
	{
		Name: "doc.gettouch", Syntax: "container id [MINAGE seconds] [WITHMETA] [PATH path [path ...]]",
		Example: "sessions s-17 MINAGE 60",
		Summary: "Returns a document as DOC.GET does and restarts its clock, as DOC.TOUCH does. MINAGE leaves the clock alone until the last write is that old.",
		Flags:   engine.Write | engine.DenyOOM, Keys: engine.OneID, Access: "RW access update", Walks: engine.Always, Parse: parseDocGetTouch,
	},
	{
		Name: "doc.mget", Syntax: "container id [id ...] [WITHMETA]",
		Summary: "Returns several documents, null for each that does not exist. WITHMETA adds _ts and _etag as in DOC.GET.",
		Flags:   engine.ReadOnly | engine.Fast, Keys: engine.AllIDs, Options: trailingMeta,
		Walks: func(args []string) bool { return trailingMeta(args) > 0 }, Parse: parseDocMget,
	},
	{
		Name: "doc.patch", Syntax: "container id [IFMATCH etag] op path [value] [op path [value] ...]",
		Example: "orders 1001 SET /status '\"paid\"'",
		Summary: "Applies up to 10 operations to a document, all or none, and restarts its clock: ADD path json, SET path json, REPLACE path json, REMOVE path, INCR path number, MOVE from path.",
		Flags:   engine.Write | engine.DenyOOM, Keys: engine.OneID, Walks: engine.Always, Parse: parseDocPatch,
	},
	{
		Name: "doc.merge", Syntax: "container id json [IFMATCH etag]",
		Summary: "Merges a JSON Merge Patch (RFC 7396) into a document, or creates a document from it, and starts its clock.",
		Flags:   engine.Write | engine.DenyOOM, Keys: engine.OneID, Walks: engine.Always, Parse: parseDocMerge,
	},
	{
		Name: "doc.del", Syntax: "container id [id ...] [IFMATCH etag]",
		Summary: "Deletes documents and returns how many existed. IFMATCH deletes one document if its etag matches.",
		Flags:   engine.Write | engine.Frees, Keys: engine.AllIDs, Access: "RM delete", Options: trailingMatch, Parse: parseDocDel,
	},
	{
		Name: "doc.exists", Syntax: "container id [id ...]",
		Summary: "Returns how many of the documents exist. One named twice counts twice.",
		Flags:   engine.ReadOnly | engine.Fast, Keys: engine.AllIDs, Access: "RO", Parse: parseDocExists,
	},
	{
		Name: "doc.touch", Syntax: "container id [id ...] [IFMATCH etag]",
		Summary: "Restarts the clock of documents without changing them and returns how many exist. IFMATCH touches one document if its etag matches.",
		Flags:   engine.Write | engine.Fast, Keys: engine.AllIDs, Access: "RW update", Options: trailingMatch, Walks: engine.Always, Parse: parseDocTouch,
	},
	docTTLRow("doc.ttl", "Returns how many seconds a document has left", items.FromNow, items.Seconds),
	docTTLRow("doc.pttl", "Returns how many milliseconds a document has left", items.FromNow, items.Milliseconds),
	docTTLRow("doc.expiretime", "Returns when a document dies, in seconds since 1970", items.FromEpoch, items.Seconds),
	docTTLRow("doc.pexpiretime", "Returns when a document dies, in milliseconds since 1970", items.FromEpoch, items.Milliseconds),
	{
		Name: "doc.setttl", Syntax: "container id <-1 | seconds | NULL> [IFMATCH etag]",
		Summary: "Sets or (NULL) removes a document's member ttl and restarts its clock. Returns 1, or 0 if the document does not exist or has another etag.",
		Flags:   engine.Write | engine.DenyOOM, Keys: engine.OneID, Walks: engine.Always, Parse: parseDocSetTTL,
	},
	{
		Name: "doc.meta", Syntax: "container id",
		Summary: "Returns what governs a document: ts, expiresat and ttlleft in milliseconds, ttl in seconds, size in bytes.",
		Flags:   engine.ReadOnly | engine.Fast, Keys: engine.OneID, Walks: engine.Always, Parse: engine.NoParse(engine.Peeking(runDocMeta)),
	},
	{
		Name: "doc.count", Syntax: "container", Summary: "Returns the number of living documents in a container, exactly.",
		Flags: engine.ReadOnly, Scope: engine.ScopeSweep, Parse: parseDocCount,
	},
	{
		Name: "doc.scan", Syntax: "container cursor [MATCH pattern] [COUNT count] [WITHDOCS] [WITHMETA]",
		Example: "orders 0 COUNT 100 WITHDOCS",
		Summary: "Lists the ids of a container's documents a portion at a time. WITHDOCS puts each document after its id; WITHMETA adds _ts and _etag to it.",
		Touches: engine.TouchesNamed | engine.ReadsUnnamed, Flags: engine.ReadOnly | engine.Slow, Scope: engine.ScopeSweep, Parse: parseDocScan,
	},
}

// docTTLRow returns a row of the DOC.TTL family.
func docTTLRow(name, summary string, b items.TimeBase, u items.TimeUnit) engine.Command {
	return engine.Command{
		Name: name, Syntax: "container id",
		Summary: summary + ": -1 if it does not die, -2 if it does not exist.",
		Flags:   engine.ReadOnly | engine.Fast, Keys: engine.OneID,
		Parse: engine.NoParse(engine.Peeking(runDocTTL(b, u))),
	}
}
