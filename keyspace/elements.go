package keyspace

import (
	"mayfly/keyspace/elements"
	"mayfly/keyspace/tables"
)

// Element is a field of a hash with its value, or a member of a set with an empty one, and its end in ms, 0
// for none.
type Element = elements.Element

// Elements is what lives of a collection as a transaction sees it; see [tables.Elements].
type Elements = tables.Elements

// Elements returns the elements of the hash or the set under an id, and of what kind the item there is.
func (tx *Tx) Elements(c *Container, id string) (h Elements, kind Kind, found bool) {
	p := tx.partition(id)
	handle, e := tx.lookup(p, c, id)
	if e == nil {
		return h, kind, false
	}
	t := c.tables[p.Number]
	if k := tx.ks.evictor.Tracker(); k != nil {
		tx.touch(k, t, handle, e)
	}
	it := t.Item(e)
	if it.Kind.IsCollection() {
		h = tx.elementsOf(t, it.Body)
	}
	return h, it.Kind, true
}

// elementsOf returns the elements of a body.
func (tx *Tx) elementsOf(t *table, body string) Elements {
	return t.ElementsOf(body, t.C.Policy().DeadLimits(tx.now).ByOwnTTL)
}

// CollectionsAllowed reports whether AllowCollections has nothing to do. It is cheap.
func (ks *Keyspace) CollectionsAllowed() bool { return ks.storage.CollectionsAllowed() }

// AllowCollections raises the version of the data folder, the first time, to the one in which items may have
// elements. It writes to the disk, so no partition may be locked.
func (ks *Keyspace) AllowCollections() error { return ks.ForClients(ks.storage.AllowCollections()) }
