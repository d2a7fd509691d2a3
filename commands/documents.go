package commands

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace"
)

// The commands on documents are in document_write.go, patch.go, merge.go and document_read.go; here is
// what they share.
//
// A plain key (SET) that has the id of a document asked for: commands on one id answer WRONGTYPE,
// also DOC.PUT, which overwrites nothing silently; commands on several ids, counts and scans pass it
// over as if it were not there.
var documentCommands = []Command{
	{
		Name: "doc.put", Syntax: "container id json [TTL <-1 | seconds | NULL>] [NX | XX] [IFMATCH etag]", Arity: -4,
		Summary: "Stores a document, a JSON object, and starts its clock. TTL writes the member ttl into it.",
		Group:   "document", Since: sinceFirst,
		Flags: Write | DenyOOM, Keys: OneID, Parse: parseDocPut,
	},
	{
		Name: "doc.get", Syntax: "container id [WITHMETA] [PATH path [path ...]]", Arity: -3,
		Summary: "Returns a document, or what is at one or several paths in it. WITHMETA adds _ts, the time of the last write in seconds, and _etag.",
		Group:   "document", Since: sinceFirst,
		Flags: ReadOnly | Fast, Keys: OneID, Parse: parseDocGet,
	},
	{
		Name: "doc.mget", Syntax: "container id [id ...]", Arity: -3,
		Summary: "Returns several documents, null for each that is not there.",
		Group:   "document", Since: sinceFirst,
		Flags: ReadOnly | Fast, Keys: AllIDs, Parse: parseDocMget,
	},
	{
		Name: "doc.patch", Syntax: "container id [IFMATCH etag] op path [value] [op path [value] ...]", Arity: -5,
		Summary: "Applies up to 10 operations to a document, all or none, and restarts its clock: ADD path json, SET path json, REPLACE path json, REMOVE path, INCR path number, MOVE from path.",
		Group:   "document", Since: sinceFirst,
		Flags: Write | DenyOOM, Keys: OneID, Parse: parseDocPatch,
	},
	{
		Name: "doc.merge", Syntax: "container id json [IFMATCH etag]", Arity: -4,
		Summary: "Merges a JSON Merge Patch (RFC 7396) into a document, or makes a document of it, and starts its clock.",
		Group:   "document", Since: sinceFirst,
		Flags: Write | DenyOOM, Keys: OneID, Parse: parseDocMerge,
	},
	{
		Name: "doc.del", Syntax: "container id [id ...]", Arity: -3,
		Summary: "Deletes documents and returns how many there were.",
		Group:   "document", Since: sinceFirst, Access: "RM delete",
		Flags: Write, Keys: AllIDs, Parse: parseDocDel,
	},
	{
		Name: "doc.exists", Syntax: "container id [id ...]", Arity: -3,
		Summary: "Returns how many of the documents exist. One named twice counts twice.",
		Group:   "document", Since: sinceFirst, Access: "RO",
		Flags: ReadOnly | Fast, Keys: AllIDs, Parse: parseDocExists,
	},
	{
		Name: "doc.touch", Syntax: "container id [id ...]", Arity: -3,
		Summary: "Restarts the clock of documents without changing them and returns how many there were.",
		Group:   "document", Since: sinceFirst, Access: "RW update",
		Flags: Write | Fast, Keys: AllIDs, Parse: parseDocTouch,
	},
	docEndRow("doc.ttl", "Returns how many seconds a document has left", fromNow, seconds),
	docEndRow("doc.pttl", "Returns how many milliseconds a document has left", fromNow, milliseconds),
	docEndRow("doc.expiretime", "Returns when a document dies, in seconds since 1970", fromEpoch, seconds),
	docEndRow("doc.pexpiretime", "Returns when a document dies, in milliseconds since 1970", fromEpoch, milliseconds),
	{
		Name: "doc.setttl", Syntax: "container id <-1 | seconds | NULL>", Arity: 4,
		Summary: "Sets or (NULL) removes a document's member ttl and restarts its clock; returns 1, or 0 if it is not there.",
		Group:   "document", Since: sinceFirst,
		Flags: Write | DenyOOM, Keys: OneID, Parse: parseDocSetTTL,
	},
	{
		Name: "doc.meta", Syntax: "container id", Arity: 3,
		Summary: "Returns what rules a document: ts, expiresat and ttlleft in milliseconds, ttl in seconds, size in bytes.",
		Group:   "document", Since: sinceFirst,
		Flags: ReadOnly | Fast, Keys: OneID, Parse: just(docMeta),
	},
	{
		Name: "doc.count", Syntax: "container", Arity: 2,
		Summary: "Returns the number of living documents in a container, exactly.",
		Group:   "document", Since: sinceFirst,
		Flags: ReadOnly, Scope: ScopeSweep, Parse: parseDocCount,
	},
	{
		Name: "doc.scan", Syntax: "container cursor [MATCH pattern] [COUNT count] [WITHDOCS]", Arity: -3,
		Summary: "Lists the ids of a container's documents a portion at a time. WITHDOCS puts each document after its id.",
		Group:   "document", Since: sinceFirst,
		Flags: ReadOnly, Scope: ScopeSweep, Parse: parseDocScan,
	},
}

// sinceFirst is the version in which our first own commands came.
const sinceFirst = "mayfly 0.1.0"

const errEmptyID = Error("ERR empty id: legal are 1 to 65536 bytes")

// docEndRow is a row of the family DOC.TTL.
func docEndRow(name, summary string, b base, u unit) Command {
	return Command{
		Name: name, Syntax: "container id", Arity: 3,
		Summary: summary + ": -1 if it does not die, -2 if it is not there.",
		Group:   "document", Since: sinceFirst,
		Flags: ReadOnly | Fast, Keys: OneID,
		Parse: just(docEnd(b, u)),
	}
}

// oneDocument is what a command on the one id of a container has before it.
type oneDocument struct {
	container *keyspace.Container
	id        string
	item      keyspace.Item // if found
	found     bool          // a living document
}

// onDocument makes the Run of a command on one document out of what is to be done with it. That the
// id is not too long is seen to by the engine.
func onDocument(do func(x *Context, d oneDocument) Reply) Run {
	return func(x *Context) Reply {
		c, id, err := x.placeOfDocument()
		if err != nil {
			return Fail(err)
		}
		it, found := x.Tx.Get(c, id)
		if found && it.Kind != keyspace.Document {
			return Fail(errWrongType)
		}
		return do(x, oneDocument{c, id, it, found})
	}
}

// placeOfDocument is where the one document is that a command names, if there is one.
func (x *Context) placeOfDocument() (c *keyspace.Container, id string, err error) {
	id = x.Input.Args[2]
	if id == "" {
		return nil, "", errEmptyID
	}
	c, err = x.Container(x.Input.Args[1])
	return c, id, err
}

// onDocuments makes the Run of a command on several documents out of what is to be done with them.
func onDocuments(in *Input, do func(x *Context, docs iter.Seq[oneDocument]) Reply) (Run, error) {
	name, ids := in.Args[1], in.Args[2:]
	if slices.Contains(ids, "") {
		return nil, errEmptyID
	}
	return func(x *Context) Reply {
		c, err := x.Container(name)
		if err != nil {
			return Fail(err)
		}
		return do(x, func(yield func(oneDocument) bool) {
			for _, id := range ids {
				it, found := x.Tx.Get(c, id)
				if !yield(oneDocument{c, id, it, found && it.Kind == keyspace.Document}) {
					return
				}
			}
		})
	}, nil
}

// putDocument stores a document: its clock starts now.
func putDocument(x *Context, c *keyspace.Container, id, json string, ttl expiry.TTL, e event) {
	x.put(c, id, keyspace.Document, json, expiry.OwnEnd(x.Now(), ttl), e)
}

// rewrite stores what a patch has made of a document, or in place of none: text, which is valid but for
// its size, most bytes being legal, and its nesting. A member ttl is judged if the patch may have changed
// it; one that was there and does not count goes on being ignored.
func (d oneDocument) rewrite(x *Context, text string, most int, judgeTTL bool, e event) Reply {
	if err := checkSize(text, most); err != nil {
		return Fail(err)
	}
	if err := checkNesting(text); err != nil {
		return Fail(err)
	}
	b := body{json: text}
	b.ttl, b.bad = readTTL(text)
	if judgeTTL {
		if err := b.refused(d.container.Policy()); err != nil {
			return Fail(err)
		}
	}
	putDocument(x, d.container, d.id, text, b.ttl, e)
	return OK
}

// setDocumentTTL sets the member ttl of a document, or removes it for Absent, and restarts the clock.
// most is the largest size of a document in bytes.
func setDocumentTTL(x *Context, c *keyspace.Container, id string, it keyspace.Item, ttl expiry.TTL, most int, e event) error {
	json := withTTL(it.Body, ttl)
	if err := checkSize(json, most); err != nil {
		return err
	}
	putDocument(x, c, id, json, ttl, e)
	return nil
}

// etag is an item's version as users see it, in WITHMETA, DOC.META and IFMATCH alike. Another with
// every write.
func etag(version uint64) string { return fmt.Sprintf("%016x", version) }

// parseEtag is the inverse of etag. It takes the quotes that etags wear in HTTP, too.
func parseEtag(s string) (version uint64, err error) {
	bare := s
	if len(s) >= 2 && strings.HasPrefix(s, `"`) && strings.HasSuffix(s, `"`) {
		bare = s[1 : len(s)-1]
	}
	version, err = strconv.ParseUint(bare, 16, 64)
	if err != nil || len(bare) != 16 {
		return 0, fmt.Errorf("invalid etag %s: legal are * and the 16 hexadecimal digits that DOC.META shows", expiry.Quote(s))
	}
	return version, nil
}
