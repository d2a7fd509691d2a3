package streams

import (
	"iter"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/commands/items"
	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
	"mayfly/keyspace/deathlog"
)

// The log of deaths
//
// CONTAINER.SET gives a container its log, XREAD and its family read it, and DOC.REVIVE gives a death a new
// life.

// ReviveCommand is DOC.REVIVE.
var ReviveCommand = engine.Command{
	Name: "doc.revive", Syntax: "container id [id ...]", Example: "carts 7",
	Summary: "Puts what died anew, as the newest entry with a body in the container's log has it, under each id where nothing lives. Returns how many. The clock starts again.",
	Flags:   engine.Write | engine.DenyOOM, Keys: engine.AllIDs, Access: "RW insert", Walks: engine.Always, Parse: parseDocRevive,
}

// revival is an item to be put anew.
type revival struct {
	target items.DocTarget
	entry  deathlog.Entry
	doc    jsondoc.Document // of a document
}

func parseDocRevive(in *engine.Input) (engine.Run, error) {
	return items.OnDocuments(in.Args[1], in.Args[2:], func(x *engine.Context, docs iter.Seq[items.DocTarget]) engine.Reply {
		var list []revival
		seen := map[string]bool{}
		for d := range docs {
			if _, on := d.Container.Log(); !on {
				return engine.Fail(engine.Errorf(engine.ErrNoLog, d.Container.Name()))
			}
			if d.Found || seen[d.ID] {
				continue
			}
			if _, lives := x.Tx.Get(d.Container, d.ID); lives { // a plain key
				continue
			}
			seen[d.ID] = true
			r := revival{target: d}
			look := func(e deathlog.Entry) (more bool) {
				if e.Kind.IsCollection() { // the log has no whole one
					return true
				}
				r.entry = e
				return !e.HasBody
			}
			// What is dead and lies there is the newest. It is logged when it is revived.
			if e, lies := x.Tx.Unlogged(d.Container, d.ID); !lies || look(e) {
				x.Tx.Deaths(d.Container).Of(d.ID, look)
			}
			if !r.entry.HasBody {
				continue
			}
			if err := r.judge(x); err != nil {
				return engine.Fail(err)
			}
			list = append(list, r)
		}
		for i := range list {
			list[i].put(x)
		}
		return engine.Count(len(list))
	})
}

// judge checks the document as DOC.PUT does.
func (r *revival) judge(x *engine.Context) (err error) {
	if r.entry.Kind != keyspace.Document {
		return nil
	}
	p := r.target.Container.Policy()
	if r.doc, err = jsondoc.ParseValue(r.entry.Body, len(r.entry.Body)); err != nil {
		return err
	}
	if err := r.doc.CheckTTL(p); err != nil {
		return err
	}
	r.doc.ReadDeadline(p.Deadline)
	return r.doc.CheckDeadline(p, x.Now())
}

// put stores the item. A plain key has no end of its own.
func (r *revival) put(x *engine.Context) {
	d := r.target
	if r.entry.Kind == keyspace.Document {
		items.PutDocument(x, d.Container, d.ID, &r.doc, events.DocRevive)
		return
	}
	x.Put(d.Container, d.ID, r.entry.Kind, r.entry.Body, expiry.Inherit, events.DocRevive)
}
