package keyspace

import (
	"mayfly/expiry"
)

// DB returns the number by which SELECT opens the container. It never changes.
func (c *Container) DB() uint32 { return c.db }

// NamedByNumber reports whether the container's name is its number.
func (c *Container) NamedByNumber() bool {
	_, isNumber := numberOfName(c.name)
	return isNumber
}

// ContainerOfDB returns the container of a number, nil if there is none.
func (tx *Tx) ContainerOfDB(db uint32) (c *Container) {
	tx.readCatalogue(func(cat *catalogue) { c = cat.ByDB[db] })
	return c
}

// HighestDB returns the highest number of a container.
func (tx *Tx) HighestDB() (db uint32) {
	tx.readCatalogue(func(cat *catalogue) { db = cat.ByDB.Highest() })
	return db
}

// CreateNumbered is CreateContainer with a number, 1 to MaxDB; 0 means any. The error says why the container
// cannot have that number.
func (tx *Tx) CreateNumbered(name string, db uint32, def expiry.TTL, mode expiry.Mode) (*Container, error) {
	return tx.CreateRuled(name, db, expiry.Policy{Default: def, Mode: mode})
}

// CreateRuled is CreateNumbered with a policy that has no history.
func (tx *Tx) CreateRuled(name string, db uint32, policy expiry.Policy) (*Container, error) {
	cat := tx.writeCatalogue()
	if cat.ByName[name] != nil {
		return nil, nil
	}
	db, next, err := cat.ByDB.Choose(name, db, cat.lastDB())
	if err != nil {
		return nil, err
	}
	if next {
		tx.setLastDB(db)
	}
	return tx.create(name, db, policy), nil
}

// lastDB returns the number that a container was given last. The record of database 0 has it, as any other
// may be dropped.
func (cat *catalogue) lastDB() uint32 {
	if zero := cat.ByDB[0]; zero != nil {
		return zero.lastDB
	}
	return 0
}

func (tx *Tx) setLastDB(db uint32) {
	zero := tx.ks.catalogue.ByDB[0]
	tx.noteContainer(zero)
	zero.lastDB = db
	tx.recordContainer(zero)
}

// numberRest gives numbers to the containers that the loader has not listed. The databases must exist.
func (tx *Tx) numberRest() error {
	cat := tx.writeCatalogue()
	list := cat.unnumbered
	cat.unnumbered = nil
	for _, c := range list {
		db, err := cat.ByDB.Next(cat.lastDB())
		if err != nil {
			return err
		}
		tx.setLastDB(db)
		c.db = db
		cat.Add(c)
		tx.recordContainer(c)
	}
	return nil
}
