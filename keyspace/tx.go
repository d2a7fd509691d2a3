package keyspace

import "mayfly/expiry"

// Tx is one command's (or one EXEC's) view of the keyspace at one frozen moment, holding the locks
// of what it may touch. Its zero value is ready for [Keyspace.Begin…]; it can be used again after
// [Tx.Close]. Not safe for concurrent use.
//
// Ids and bodies are passed as strings that may be views of a connection's buffer: what is stored
// is copied.
type Tx struct{}

// BeginNone starts a transaction that touches no items (it may look containers up).
func (ks *Keyspace) BeginNone(tx *Tx) { panic("stub") }

// BeginKey locks the partition of one id, then freezes the time.
func (ks *Keyspace) BeginKey(tx *Tx, id string) { panic("stub") }

// BeginKeys locks the partitions of all ids in ascending order, then freezes the time.
func (ks *Keyspace) BeginKeys(tx *Tx, ids []string) { panic("stub") }

// BeginSweep freezes the time and locks nothing: Count, Scan, Random and Stats lock one partition
// after the other. Get, Put and Delete may not be used.
func (ks *Keyspace) BeginSweep(tx *Tx) { panic("stub") }

// BeginAll locks every partition: for what changes containers.
func (ks *Keyspace) BeginAll(tx *Tx) { panic("stub") }

// Close hands what the transaction wrote to the journal as one atomic group, releases the locks
// and returns the ticket that covers all it has written and revealed.
func (tx *Tx) Close() Ticket { panic("stub") }

// Now is the frozen moment in ms.
func (tx *Tx) Now() int64 { panic("stub") }

// Container looks a container up by name; nil if there is none.
func (tx *Tx) Container(name string) *Container { panic("stub") }

// Containers gives all containers, by name in ascending order.
func (tx *Tx) Containers() []*Container { panic("stub") }

// Get returns the item under an id if it lives. One that is dead is removed from memory.
func (tx *Tx) Get(c *Container, id string) (Item, bool) { panic("stub") }

// Put stores an item under an id, living or not there before; its clock starts now. It returns the
// item as stored. own is expiry.Inherit, expiry.Never or a moment in ms after now.
func (tx *Tx) Put(c *Container, id string, kind Kind, body string, own int64) Item { panic("stub") }

// Delete removes the item under an id and tells whether it lived.
func (tx *Tx) Delete(c *Container, id string) bool { panic("stub") }

// Count gives the exact number of living items.
func (tx *Tx) Count(c *Container) int { panic("stub") }

// Scan visits about count living items from a cursor on (0 starts) and returns the cursor to go on
// from, 0 at the end. Every item that lives throughout a whole scan is visited once; one that
// comes after the scan has begun may be or not. id and item are safe to keep.
func (tx *Tx) Scan(c *Container, cursor uint64, count int, visit func(id string, it Item)) uint64 {
	panic("stub")
}

// Random gives a random living item; false if there is none.
func (tx *Tx) Random(c *Container) (id string, it Item, ok bool) { panic("stub") }

// CreateContainer makes a container; nil if one of that name exists. Needs BeginAll. The caller
// has checked the name with [ValidName].
func (tx *Tx) CreateContainer(name string, def expiry.TTL, mode expiry.Mode) *Container {
	panic("stub")
}

// SetPolicy changes what rules a container from now on. Constant time. Needs BeginAll.
func (tx *Tx) SetPolicy(c *Container, def expiry.TTL, mode expiry.Mode) { panic("stub") }

// Drop removes a container with all it holds. Constant time; memory and disk follow in the
// background. Needs BeginAll.
func (tx *Tx) Drop(c *Container) { panic("stub") }

// Flush empties a container, keeping its name and policy. Constant time. Needs BeginAll. Handles of
// the container from before are stale.
func (tx *Tx) Flush(c *Container) { panic("stub") }

// Container is a named set of items under one policy. A handle is valid within the transaction
// that looked it up.
type Container struct{}

// Name is the container's name.
func (c *Container) Name() string { panic("stub") }

// Policy is what rules the container.
func (c *Container) Policy() *expiry.Policy { panic("stub") }

// IsDatabase tells whether the container is one of the databases 0 to 15, which cannot be dropped.
func (c *Container) IsDatabase() bool { panic("stub") }

// ValidName tells whether a container may have this name: 1 to 255 of letters, digits, _ . : -
func ValidName(name string) bool { panic("stub") }

// ContainerStats are figures of one container.
type ContainerStats struct {
	Documents int   // living items, exact
	InMemory  int   // items in memory, those dead and not yet purged among them
	Bytes     int64 // of ids and bodies in memory
	Mortal    int   // items in memory with an end of their own
}

// Stats gives a container's figures. It goes through the partitions one by one.
func (tx *Tx) Stats(c *Container) ContainerStats { panic("stub") }

// Keyspace is the set of all containers and what they hold. Safe for concurrent use.
type Keyspace struct{}

// Open opens the data folder, loads what it holds and starts the active purge and the background
// work. Errors are one clear line.
func Open(opt Options) (*Keyspace, error) { panic("stub") }

// Close stops the background work, commits and forces all to disk and releases the data folder.
func (ks *Keyspace) Close() error { panic("stub") }

// Wait returns once what the ticket stands for is committed as the fsync policy asks: its group may
// be committed by this call, together with everybody else's pending work. The error says why it
// could not be; nothing is lost then, it is tried again.
func (ks *Keyspace) Wait(t Ticket) error { panic("stub") }

// Writable returns nil, or the error because of which writes are refused for now (MISCONF).
func (ks *Keyspace) Writable() error { panic("stub") }

// Now reads the clock, in ms.
func (ks *Keyspace) Now() int64 { panic("stub") }

// SetFsync changes the fsync policy while running.
func (ks *Keyspace) SetFsync(f Fsync) { panic("stub") }

// SetExpireEffort changes active-expire-effort (1 to 10) while running.
func (ks *Keyspace) SetExpireEffort(effort int) { panic("stub") }

// Stats are figures of the whole keyspace for INFO.
type Stats struct {
	Partitions int
	Expiry     expiry.Stats
	// Persistence.
	PendingBytes   int64  // applied in memory, not yet committed
	JournalBytes   int64  // size of the journal files
	StoreBytes     int64  // size of the partition files
	LastWriteError string // empty: the last write worked
	Fsyncs         int64
	Commits        int64 // groups committed
}

// Stats gives the figures.
func (ks *Keyspace) Stats() Stats { panic("stub") }

// PurgeOnce runs one slow cycle of the active purge; tests drive the purge with it.
func (ks *Keyspace) PurgeOnce() { panic("stub") }
