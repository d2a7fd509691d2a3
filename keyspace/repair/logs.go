package repair

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/record"
)

// Logs of deaths in a repair
//
// A log and the container whose deaths it has name each other: the record of the container counts, that of
// the log helps if it is lost. Where damage has parted them:
//
//  1. a log whose record is lost gets a new one, which keeps entries for ever, until LOG sets a time;
//  2. a log that no container names belongs to the one that it names, if that has no other;
//  3. a log without either belongs to a container recovered-<number>, which has no items;
//  4. what a readable record says was dropped stays dropped: the delete of a container or a log, an owner of
//     another log.
//
// A group goes with its log. An item that died is left out, even if the record that removed it is lost: its
// entry proves the death.

// defaultMaxLen is the length of a log whose owner's record is lost.
const defaultMaxLen = 1_000_000

// settleLogs decides how logs and groups are copied. newer reports whether the record of a container was
// written after that of another.
func (p *run) settleLogs(newer func(number, than uint32) bool) {
	claims := p.logClaims(newer)
	for _, number := range slices.Sorted(maps.Keys(p.names.byNumber)) {
		switch c := p.names.byNumber[number]; {
		case c.Hidden == nil:
			continue
		case !c.Hidden.IsGroup() && claims[number] == nil:
			p.settleUnclaimed(c)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(p.names.byNumber)) {
		if c := p.names.byNumber[number]; c.Hidden != nil {
			p.known[number].dropped = p.known[number].dropped || c.Hidden.IsGroup() && !p.copiesLog(c.Hidden.GroupOf)
			p.known[number].name = p.names.hiddenName(c.Hidden)
		}
	}
	p.dropOlderGroups(newer)
}

// logClaims returns the containers that name a log, by its number. A container that names what is no log has
// none.
func (p *run) logClaims(newer func(number, than uint32) bool) map[uint32]*record.Container {
	claims := make(map[uint32]*record.Container)
	for _, number := range slices.Sorted(maps.Keys(p.names.byNumber)) {
		c := p.names.byNumber[number]
		if c.Log == nil {
			continue
		}
		log := p.names.byNumber[c.Log.Number]
		switch lost := p.known[c.Log.Number]; {
		case log != nil && (log.Hidden == nil || log.Hidden.IsGroup()), log == nil && lost != nil && lost.dropped, log == nil && p.losses == 0:
			p.doubt("the log of container %q is gone: it may have been switched off, or on again since", c.Name)
			c.Log = nil
			continue
		case log == nil:
			p.makeLog(c.Log.Number, number)
			p.doubt("the record of the log of container %q is lost: its entries are kept until LOG sets a time", c.Name)
		}
		if other := claims[c.Log.Number]; other != nil {
			if newer(other.Number, number) {
				other, c = c, other
			}
			p.doubt("containers %q and %q have the same log: it goes with the newer record, that of %q", other.Name, c.Name, c.Name)
			other.Log = nil
			claims[c.Log.Number] = c
			continue
		}
		claims[c.Log.Number] = c
	}
	for number, c := range claims {
		h := *p.names.byNumber[number].Hidden
		h.LogOf = c.Number
		p.names.byNumber[number].Hidden = &h
	}
	return claims
}

// makeLog makes the record of a log that is lost.
func (p *run) makeLog(number, of uint32) {
	p.names.byNumber[number] = &record.Container{
		Number: number, Created: p.names.clock, Policy: expiry.Policy{Default: expiry.Forever}, Hidden: &record.Hidden{LogOf: of},
	}
	p.known[number] = &targetContainer{}
}

// settleUnclaimed finds the container of a log that none names, or drops the log.
func (p *run) settleUnclaimed(log *record.Container) {
	of := log.Hidden.LogOf
	owner, target := p.names.byNumber[of], p.known[of]
	switch {
	case p.losses == 0, owner == nil && target != nil && target.dropped, owner != nil && owner.Hidden != nil:
		p.known[log.Number].dropped = true
	case owner != nil && owner.Log != nil:
		p.doubt("container %q has another log than %d: that one is not copied; it may have been switched off and on", owner.Name, log.Number)
		p.known[log.Number].dropped = true
	case owner != nil:
		p.doubt("the record of container %q lacks its log, which is copied; it may have been switched off", owner.Name)
		owner.Log = &record.Log{Number: log.Number, MaxLen: defaultMaxLen, Bodies: true}
	default:
		name, _ := p.nameOf(record.Key{Container: of})
		p.names.byNumber[of] = p.recovered(of, name)
		p.names.byNumber[of].Log = &record.Log{Number: log.Number, MaxLen: defaultMaxLen, Bodies: true}
	}
}

// recovered returns the record of a container whose own is lost.
func (p *run) recovered(number uint32, name string) *record.Container {
	return &record.Container{Number: number, Name: name, Created: p.names.clock, Policy: expiry.Policy{Default: expiry.Forever}}
}

// isHidden reports whether a container holds a log or a group.
func (p *run) isHidden(number uint32) bool {
	c := p.names.byNumber[number]
	return c != nil && c.Hidden != nil
}

// fitsGroup reports whether an item is one of the state of a group, if its container is a group: a start
// refuses others.
func (p *run) fitsGroup(k record.Key, rec string) bool {
	c, target := p.names.byNumber[k.Container], p.known[k.Container]
	if c == nil || c.Hidden == nil || !c.Hidden.IsGroup() {
		return true
	}
	it, err := record.DecodeHeader(rec)
	if err == nil {
		_, err = groups.Load(func(yield func(string, string) bool) { yield(k.ID, it.Body) })
	}
	if err == nil && it.Kind == record.Plain {
		return true
	}
	if !target.mixed {
		target.mixed = true
		p.doubt("the %s has items that are not of a group: they are not copied", target.name)
	}
	return false
}

// copiesLog reports whether a log is copied.
func (p *run) copiesLog(number uint32) bool {
	c := p.names.byNumber[number]
	return c != nil && c.Hidden != nil && !c.Hidden.IsGroup() && !p.known[number].dropped
}

// dropOlderGroups leaves a shared name to the group that was recorded last. The delete of the other is lost.
func (p *run) dropOlderGroups(newer func(number, than uint32) bool) {
	owner := make(map[record.Hidden]uint32)
	for _, number := range slices.Sorted(maps.Keys(p.names.byNumber)) {
		c := p.names.byNumber[number]
		if c.Hidden == nil || !c.Hidden.IsGroup() || p.known[number].dropped {
			continue
		}
		if other, taken := owner[*c.Hidden]; taken {
			p.doubt("containers %d and %d both hold the %s: the older is not copied", other, number, p.known[number].name)
			if newer(other, number) {
				p.known[number].dropped = true
				continue
			}
			p.known[other].dropped = true
		}
		owner[*c.Hidden] = number
	}
}

// hiddenName says what a container without a name holds.
func (n *names) hiddenName(h *record.Hidden) string {
	if h.IsGroup() {
		of := fmt.Sprintf("log %d", h.GroupOf)
		if log := n.byNumber[h.GroupOf]; log != nil && log.Hidden != nil && !log.Hidden.IsGroup() {
			of = n.hiddenName(log.Hidden)
		}
		return fmt.Sprintf("group %s of the %s", expiry.Quote(h.Group), of)
	}
	if c := n.byNumber[h.LogOf]; c != nil {
		return "log of " + c.Name
	}
	return fmt.Sprintf("log of container %d", h.LogOf)
}

// exists reports whether a container with a record exists, as a start decides: a log if a container names it,
// a group if its log does.
func (n *names) exists(number uint32) bool {
	c := n.byNumber[number]
	switch {
	case c == nil:
		return false
	case c.Hidden == nil:
		return true
	case c.Hidden.IsGroup():
		log := n.byNumber[c.Hidden.GroupOf]
		return log != nil && log.Hidden != nil && !log.Hidden.IsGroup() && n.exists(c.Hidden.GroupOf)
	}
	for _, owner := range n.byNumber {
		if owner.Log != nil && owner.Log.Number == number {
			return true
		}
	}
	return false
}

// settleOwners gives each log that was found by its entries alone a container, whose number no item has.
func (p *run) settleOwners() {
	next := uint32(0)
	for number := range p.known {
		next = max(next, number+1)
	}
	for _, number := range p.ownerless {
		for p.known[next] != nil { // the numbers have wrapped around
			next++
		}
		c := p.recovered(next, p.known[number].name)
		c.Log = &record.Log{Number: number, MaxLen: defaultMaxLen, Bodies: true}
		p.names.byNumber[next], p.known[next] = c, &targetContainer{name: c.Name}
		p.names.byNumber[number].Hidden = &record.Hidden{LogOf: next}
	}
}

// isDeletion reports whether the record of an entry is of what a client has deleted.
func isDeletion(key, rec string) bool {
	k, err := record.SplitKey(key)
	it, _, bad := record.Decode(key, rec)
	e, unread := deathlog.ReadEntry(k.ID, it)
	return errors.Join(err, bad, unread) == nil && e.Cause == deathlog.Deleted
}

// proven is a death that an entry proves: of the version of an item. No other item of the partition has had
// it.
type proven struct {
	id   string
	etag uint64
}

// deaths returns the deaths that entries prove. In a sound folder the items are removed already.
func (g *merged) deaths() map[proven]bool {
	if !g.damaged {
		return nil
	}
	dead := make(map[proven]bool)
	for key, v := range g.items {
		k, err := record.SplitKey(key)
		if err != nil || !k.Log || v.rec+v.undeleted == "" {
			continue
		}
		it, _, err := record.Decode(key, v.rec+v.undeleted) // one of them is empty
		if err != nil {
			continue
		}
		if e, err := deathlog.ReadEntry(k.ID, it); err == nil {
			dead[proven{strings.Clone(e.Item), e.Etag}] = true
		}
	}
	return dead
}
