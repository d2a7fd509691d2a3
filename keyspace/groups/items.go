package groups

import (
	"fmt"
	"iter"
	"strconv"
	"strings"

	"mayfly/keyspace/streamid"
)

// Tag is the beginning of all ids of items. It is a hash tag, so that all groups lie in one partition.
const Tag = "{g}"

// The ids of items.
const (
	lastItem       = Tag + "last"
	consumerPrefix = Tag + "c:"
)

// MostName is the length in bytes of the longest name of a consumer and of a group, if ids have at most
// mostID bytes.
func MostName(mostID int) int { return mostID - len(consumerPrefix) }

// entryItem returns the id of the item of a pending entry.
func entryItem(id streamid.ID) string { return string(id.Append([]byte(Tag))) }

// kind is what an item describes.
type kind uint8

const (
	lastKind kind = iota
	consumerKind
	entryKind
)

// parsedItem is an item as a value.
type parsedItem struct {
	kind     kind
	id       streamid.ID // the last delivered, or that of the entry
	consumer string
	time     int64 // ms: last seen, or delivered
	count    int64 // entries read, or deliveries
}

// parseItem reads an item. Each value has one form only.
func parseItem(item, body string) (p parsedItem, err error) {
	name, tagged := strings.CutPrefix(item, Tag)
	ok := false
	switch consumer, isConsumer := strings.CutPrefix(name, "c:"); {
	case !tagged:
	case name == "last":
		id, read, _ := strings.Cut(body, " ")
		p.id, ok = parseID(id)
		if ok {
			p.count, ok = parseInt(read) // any: in Redis it overflows
		}
	case isConsumer:
		p.kind, p.consumer = consumerKind, consumer
		p.time, ok = parseInt(body)
	default:
		p.kind = entryKind
		if p.id, ok = parseID(name); !ok {
			break
		}
		fields := strings.SplitN(body, " ", 3)
		if ok = len(fields) == 3; !ok {
			break
		}
		if p.time, ok = parseInt(fields[0]); !ok {
			break
		}
		p.count, ok = parseInt(fields[1])
		p.consumer = fields[2]
	}
	if !ok {
		return p, fmt.Errorf("item %.100q of a consumer group cannot be read: %.100q", item, body)
	}
	return p, nil
}

// parseID reads an id in the form in which it is written.
func parseID(s string) (streamid.ID, bool) {
	id, ok := streamid.Parse(s, 0)
	return id, ok && id.String() == s
}

// parseInt reads a number in the form in which it is written.
func parseInt(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == s
}

// lastBody returns the body of the item of the last delivered id.
func lastBody(last streamid.ID, read int64) string {
	return string(strconv.AppendInt(append(last.Append(nil), ' '), read, 10))
}

// entryBody returns the body of the item of a pending entry.
func entryBody(time, count int64, consumer string) string {
	b := make([]byte, 0, 20+len(consumer))
	b = append(strconv.AppendInt(b, time, 10), ' ')
	b = append(strconv.AppendInt(b, count, 10), ' ')
	return string(append(b, consumer...))
}

// Redated returns the body of an item that can be read with no time later than a moment in ms.
func Redated(item, body string, now int64) string {
	switch p, _ := parseItem(item, body); p.kind {
	case consumerKind:
		return strconv.FormatInt(min(p.time, now), 10)
	case entryKind:
		return entryBody(min(p.time, now), p.count, p.consumer)
	}
	return body
}

// Load makes a group of its items, in any order. The strings may be views: what stays is copied. Without the
// last delivered id the group begins anew. The error names an item that cannot be read.
func Load(items iter.Seq2[string, string]) (*Group, error) {
	g := New(streamid.ID{}, Unknown)
	for item, body := range items {
		p, err := parseItem(item, body)
		if err != nil {
			return nil, err
		}
		g.set(p)
	}
	return g, nil
}

// Items yields the items of the group, in no particular order.
func (g *Group) Items() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if !yield(lastItem, lastBody(g.last, g.read)) {
			return
		}
		for c := range g.Consumers() {
			if !yield(consumerPrefix+c.name, strconv.FormatInt(c.seen, 10)) {
				return
			}
		}
		g.pending.Scan(func(e *Pending) bool {
			return yield(entryItem(e.ID), entryBody(e.Time, e.Count, e.consumer.name))
		})
	}
}

// set applies an item to the state.
func (g *Group) set(p parsedItem) {
	switch p.kind {
	case lastKind:
		g.last, g.read = p.id, p.count
	case consumerKind:
		g.consumer(p.consumer).seen = p.time
	case entryKind:
		g.put(p.id, g.consumer(p.consumer), p.time, p.count)
	}
}

// remove takes the state of an item back that did not exist before.
func (g *Group) remove(p parsedItem) {
	switch p.kind {
	case lastKind:
		g.last, g.read = streamid.ID{}, Unknown
	case consumerKind:
		g.dropConsumer(p.consumer)
	case entryKind:
		g.drop(p.id)
	}
}

// Apply applies the change of an item that another machine has journalled. The strings may be views. gone
// reports that a consumer was removed: the group is then to be loaded again once all items have changed,
// since the changes of a group of the journal come in another order. The error names an item that cannot be
// read.
func (g *Group) Apply(item, body string, deleted bool) (gone bool, err error) {
	if !deleted {
		p, err := parseItem(item, body)
		if err == nil {
			g.set(p)
		}
		return false, err
	}
	if name, isConsumer := strings.CutPrefix(item, consumerPrefix); isConsumer {
		return g.Consumer(name) != nil, nil
	}
	if id, ok := parseID(strings.TrimPrefix(item, Tag)); ok {
		g.drop(id)
	}
	return false, nil
}
