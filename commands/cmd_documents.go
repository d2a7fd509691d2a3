package commands

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"mayfly/commands/jsondoc"
	"mayfly/expiry"
	"mayfly/keyspace"
)

// The commands on documents. Their Runs are in cmd_documents_read.go and cmd_documents_write.go.
//
// An id may name a plain key (SET) instead of a document. A command on one id then answers WRONGTYPE;
// DOC.PUT, too, overwrites no plain key. Commands on several ids, counts and scans skip plain keys.
var documentCommands = []Command{
	{
		Name: "doc.put", Syntax: "container id json [TTL <-1 | seconds | NULL>] [NX | XX] [IFMATCH etag] [TS milliseconds]",
		Summary: "Stores a document, a JSON object, and starts its clock. TTL writes the member ttl into it. TS keeps the time at which it was written elsewhere, and returns null if it is dead by now or was written later here.",
		Flags:   Write | DenyOOM, Keys: OneID, Parse: parseDocPut,
	},
	{
		Name: "doc.get", Syntax: "container id [WITHMETA] [PATH path [path ...]]",
		Summary: "Returns a document, or the values at one or several paths in it. WITHMETA adds _ts, the time of the last write in seconds, and _etag.",
		Flags:   ReadOnly | Fast, Keys: OneID, Walks: ifLonger(3), Parse: parseDocGet,
	},
	{
		Name: "doc.gettouch", Syntax: "container id [MINAGE seconds] [WITHMETA] [PATH path [path ...]]",
		Example: "sessions s-17 MINAGE 60",
		Summary: "Returns a document as DOC.GET does and restarts its clock, as DOC.TOUCH does. MINAGE leaves the clock alone until the last write is that old.",
		Flags:   Write | DenyOOM, Keys: OneID, Access: "RW access update", Walks: always, Parse: parseDocGetTouch,
	},
	{
		Name: "doc.mget", Syntax: "container id [id ...] [WITHMETA]",
		Summary: "Returns several documents, null for each that does not exist. WITHMETA adds _ts and _etag as in DOC.GET.",
		Flags:   ReadOnly | Fast, Keys: AllIDs, Options: trailingMeta,
		Walks: func(args []string) bool { return trailingMeta(args) > 0 }, Parse: parseDocMget,
	},
	{
		Name: "doc.patch", Syntax: "container id [IFMATCH etag] op path [value] [op path [value] ...]",
		Example: "orders 1001 SET /status '\"paid\"'",
		Summary: "Applies up to 10 operations to a document, all or none, and restarts its clock: ADD path json, SET path json, REPLACE path json, REMOVE path, INCR path number, MOVE from path.",
		Flags:   Write | DenyOOM, Keys: OneID, Walks: always, Parse: parseDocPatch,
	},
	{
		Name: "doc.merge", Syntax: "container id json [IFMATCH etag]",
		Summary: "Merges a JSON Merge Patch (RFC 7396) into a document, or creates a document from it, and starts its clock.",
		Flags:   Write | DenyOOM, Keys: OneID, Walks: always, Parse: parseDocMerge,
	},
	{
		Name: "doc.del", Syntax: "container id [id ...] [IFMATCH etag]",
		Summary: "Deletes documents and returns how many existed. IFMATCH deletes one document if its etag matches.",
		Flags:   Write | Frees, Keys: AllIDs, Access: "RM delete", Options: trailingMatch, Parse: parseDocDel,
	},
	{
		Name: "doc.exists", Syntax: "container id [id ...]",
		Summary: "Returns how many of the documents exist. One named twice counts twice.",
		Flags:   ReadOnly | Fast, Keys: AllIDs, Access: "RO", Parse: parseDocExists,
	},
	{
		Name: "doc.touch", Syntax: "container id [id ...] [IFMATCH etag]",
		Summary: "Restarts the clock of documents without changing them and returns how many exist. IFMATCH touches one document if its etag matches.",
		Flags:   Write | Fast, Keys: AllIDs, Access: "RW update", Options: trailingMatch, Walks: always, Parse: parseDocTouch,
	},
	docTTLRow("doc.ttl", "Returns how many seconds a document has left", fromNow, seconds),
	docTTLRow("doc.pttl", "Returns how many milliseconds a document has left", fromNow, milliseconds),
	docTTLRow("doc.expiretime", "Returns when a document dies, in seconds since 1970", fromEpoch, seconds),
	docTTLRow("doc.pexpiretime", "Returns when a document dies, in milliseconds since 1970", fromEpoch, milliseconds),
	{
		Name: "doc.setttl", Syntax: "container id <-1 | seconds | NULL> [IFMATCH etag]",
		Summary: "Sets or (NULL) removes a document's member ttl and restarts its clock. Returns 1, or 0 if the document does not exist or has another etag.",
		Flags:   Write | DenyOOM, Keys: OneID, Walks: always, Parse: parseDocSetTTL,
	},
	{
		Name: "doc.meta", Syntax: "container id",
		Summary: "Returns what governs a document: ts, expiresat and ttlleft in milliseconds, ttl in seconds, size in bytes.",
		Flags:   ReadOnly | Fast, Keys: OneID, Walks: always, Parse: noParse(peeking(runDocMeta)),
	},
	{
		Name: "doc.count", Syntax: "container", Summary: "Returns the number of living documents in a container, exactly.",
		Flags: ReadOnly, Scope: ScopeSweep, Parse: parseDocCount,
	},
	{
		Name: "doc.scan", Syntax: "container cursor [MATCH pattern] [COUNT count] [WITHDOCS] [WITHMETA]",
		Example: "orders 0 COUNT 100 WITHDOCS",
		Summary: "Lists the ids of a container's documents a portion at a time. WITHDOCS puts each document after its id; WITHMETA adds _ts and _etag to it.",
		Flags:   ReadOnly | Slow, Scope: ScopeSweep, Parse: parseDocScan,
	},
}

// sinceFirst is the first version with mayfly's own commands.
const sinceFirst = "mayfly 0.1.0"

// docTTLRow returns a row of the DOC.TTL family.
func docTTLRow(name, summary string, b timeBase, u timeUnit) Command {
	return Command{
		Name: name, Syntax: "container id",
		Summary: summary + ": -1 if it does not die, -2 if it does not exist.",
		Flags:   ReadOnly | Fast, Keys: OneID,
		Parse: noParse(peeking(runDocTTL(b, u))),
	}
}

// docTarget is the document that a command names.
type docTarget struct {
	container *keyspace.Container
	id        string
	item      keyspace.Item // the zero item unless found
	found     bool          // the document exists
}

// onDocument returns the Run of a command on one document: it looks the document up and calls do. The
// engine has checked the length of the id.
func onDocument(do func(x *Context, d docTarget) Reply) Run {
	return func(x *Context) Reply {
		c, id, err := x.placeOfDocument()
		if err != nil {
			return Fail(err)
		}
		it, found := x.Tx.Get(c, id)
		if found && it.Kind != keyspace.Document {
			return Fail(errPlainKey)
		}
		return do(x, docTarget{c, id, it, found})
	}
}

// placeOfDocument returns the container and the id that a command on one document names.
func (x *Context) placeOfDocument() (c *keyspace.Container, id string, err error) {
	id = x.Input.Args[2]
	if id == "" {
		return nil, "", errEmptyID
	}
	c, err = x.Container(x.Input.Args[1])
	return c, id, err
}

// onDocuments returns the Run of a command on several documents. It calls do with an iterator that
// looks them up one by one. name is the container's.
func onDocuments(name string, ids []string, do func(x *Context, docs iter.Seq[docTarget]) Reply) (Run, error) {
	if slices.Contains(ids, "") {
		return nil, errEmptyID
	}
	return func(x *Context) Reply {
		c, err := x.Container(name)
		if err != nil {
			return Fail(err)
		}
		return do(x, func(yield func(docTarget) bool) {
			for _, id := range ids {
				it, found := x.Tx.Get(c, id)
				if !yield(docTarget{c, id, it, found && it.Kind == keyspace.Document}) {
					return
				}
			}
		})
	}, nil
}

// countRead counts that a client has asked for the document.
func (d docTarget) countRead(x *Context) { x.countRead(d.container, d.id, d.found) }

// putDocument stores a document and restarts its clock. One whose deadline has passed is gone at once.
func putDocument(x *Context, c *keyspace.Container, id string, doc *jsondoc.Document, e eventKind) {
	if doc.Passed(c.Policy(), x.Now()) {
		x.putDead(c, id, e)
		return
	}
	x.storeDocument(c, id, doc, doc.ExpireAt(x.Now()), e)
}

// storeDocument stores a document with an end, whatever it says of one itself.
func (x *Context) storeDocument(c *keyspace.Container, id string, doc *jsondoc.Document, expireAt int64, e eventKind) {
	n := keyspace.Chosen
	if doc.Compact {
		n = keyspace.Compact
	}
	x.storeEncoded(c, id, keyspace.Document, doc.JSON, expireAt, n)
	x.notify(e, c, id)
}

// putEdited stores the document that a patch has made of the target. touches reports whether the patch may have changed a
// root member. The container judges only the ttl and the deadline that it has: else one that was ignored before
// stays ignored.
func (d docTarget) putEdited(x *Context, doc jsondoc.Document, touches func(member string) bool, e eventKind) Reply {
	p := d.container.Policy()
	if touches(jsondoc.TTLMember) {
		if err := doc.CheckTTL(p); err != nil {
			return Fail(err)
		}
	}
	if p.Deadline != "" && touches(p.Deadline) {
		if err := doc.CheckDeadline(p, x.Now()); err != nil {
			return Fail(err)
		}
	}
	putDocument(x, d.container, d.id, &doc, e)
	return OK
}

// etag returns an item's version as users see it in WITHMETA, DOC.META and IFMATCH. Every write changes
// it.
func etag(version uint64) string { return string(appendEtag(nil, version)) }

func appendEtag(dst []byte, version uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[version>>shift&0xf])
	}
	return dst
}

// The commands that show the etags of documents and of containers.
const (
	docEtags       = "DOC.META"
	containerEtags = "CONTAINER.GET"
)

// parseEtag is the inverse of etag. It accepts quotes around the etag, as in HTTP. shownBy is as in parseMatch.
func parseEtag(s, shownBy string) (version uint64, err error) {
	bare := s
	if len(s) >= 2 && strings.HasPrefix(s, `"`) && strings.HasSuffix(s, `"`) {
		bare = s[1 : len(s)-1]
	}
	version, err = strconv.ParseUint(bare, 16, 64)
	if err != nil || len(bare) != 16 {
		return 0, fmt.Errorf("invalid etag %s: legal are * and the 16 hexadecimal digits that %s shows", expiry.Quote(s), shownBy)
	}
	return version, nil
}
