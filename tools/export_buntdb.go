package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace"

	"github.com/tidwall/buntdb"
)

const (
	// A transaction is committed when it holds this many bytes or items.
	commitBytes = 1 << 20
	commitItems = 1000

	// longestTTL is the longest TTL that buntdb is told, less than the 292 years of a Duration.
	longestTTL = 200 * 365 * 24 * time.Hour
)

// databaseSink writes an export into a buntdb database. buntdb holds all of it in memory.
type databaseSink struct {
	db    *buntdb.DB
	wall  clock.Clock // the machine's, by which buntdb's TTLs count
	lines lineWriter

	policies map[string]expiry.Policy
	notes    map[string]*notes // by container

	pending []pendingItem
	bytes   int
}

// pendingItem is a key that the next transaction sets.
type pendingItem struct {
	key, value string
	ttl        time.Duration // 0: none
}

// notes are those of a container that no transaction has taken yet.
type notes struct {
	text  []byte
	count int
	parts int // that exist already
}

// exportDatabase lets a source write into the database in an empty file, which the caller forces to disk.
func exportDatabase(f *os.File, write func(s sink) error) (err error) {
	db, err := buntdb.Open(f.Name())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	// buntdb drops the errors of its own fsync, and shrinks without one.
	if err := db.SetConfig(buntdb.Config{SyncPolicy: buntdb.Never, AutoShrinkDisabled: true}); err != nil {
		return err
	}
	s := &databaseSink{db: db, wall: clock.NewSystem(0), policies: make(map[string]expiry.Policy), notes: make(map[string]*notes)}
	if err := s.setFormat(false); err != nil {
		return err
	}
	if err := write(s); err != nil {
		return err
	}
	return s.finish()
}

func (s *databaseSink) container(c keyspace.ContainerRecord) error {
	s.policies[c.Name] = c.Policy
	line := s.lines.container(c)
	return s.set(containerPrefix+c.Name, string(line[:len(line)-1]), 0)
}

func (s *databaseSink) item(container, id string, it keyspace.Item) (kept bool, err error) {
	var ttl time.Duration
	if it.ExpireAt > 0 && s.policies[container].Default != expiry.Off {
		var lives bool
		if ttl, lives = databaseTTL(it.ExpireAt, s.wall.Now()); !lives {
			return false, nil
		}
	}
	if err := s.set(itemKey(container, id), it.Body, ttl); err != nil {
		return false, err
	}
	n := s.notes[container]
	if n == nil {
		n = &notes{}
		s.notes[container] = n
	}
	if n.count == 0 {
		n.text = append(n.text, '[')
	} else {
		n.text = append(n.text, ",\n"...)
	}
	n.text = append(n.text, s.lines.note(id, it)...)
	if n.count++; n.count == notesPerPart {
		err = s.setNotes(container, n)
	}
	return true, err
}

// databaseTTL returns the TTL that makes buntdb drop an item at its end (ms), rounded up to a whole
// second. 0 means none: the end is too far away. lives reports whether the end is still to come.
func databaseTTL(end, now int64) (ttl time.Duration, lives bool) {
	if end <= now {
		return 0, false
	}
	if end-now > longestTTL.Milliseconds() {
		return 0, true
	}
	// buntdb adds the TTL to the time it reads itself, a moment after now, and cuts off what is not a
	// whole second. Half a second keeps that moment from mattering.
	second := (end + 999) / 1000
	return time.Duration(second*1000-now)*time.Millisecond + time.Second/2, true
}

// setNotes sets the key of the next part of a container's notes.
func (s *databaseSink) setNotes(container string, n *notes) error {
	n.parts++
	key := fmt.Sprintf("%s%s/%06d", itemsPrefix, container, n.parts)
	text := string(append(n.text, ']'))
	n.text, n.count = n.text[:0], 0
	return s.set(key, text, 0)
}

// set adds a key to the pending transaction and commits that when it is large enough.
func (s *databaseSink) set(key, value string, ttl time.Duration) error {
	s.pending = append(s.pending, pendingItem{key, value, ttl})
	s.bytes += len(key) + len(value)
	if len(s.pending) < commitItems && s.bytes < commitBytes {
		return nil
	}
	return s.commit()
}

func (s *databaseSink) commit() error {
	err := s.db.Update(func(tx *buntdb.Tx) error {
		for _, it := range s.pending {
			var options *buntdb.SetOptions
			if it.ttl > 0 {
				options = &buntdb.SetOptions{Expires: true, TTL: it.ttl}
			}
			if _, _, err := tx.Set(it.key, it.value, options); err != nil {
				return err
			}
		}
		return nil
	})
	clear(s.pending)
	s.pending, s.bytes = s.pending[:0], 0
	return err
}

// finish writes the rest of the notes and then marks the database as complete.
func (s *databaseSink) finish() error {
	for container, n := range s.notes {
		if n.count == 0 {
			continue
		}
		if err := s.setNotes(container, n); err != nil {
			return err
		}
	}
	return s.setFormat(true)
}

// setFormat sets the format's key in a transaction of its own.
func (s *databaseSink) setFormat(complete bool) error {
	text, err := json.Marshal(formatNote{formatVersion, complete})
	if err != nil {
		return err
	}
	if err := s.commit(); err != nil {
		return err
	}
	if err := s.set(formatKey, string(text), 0); err != nil {
		return err
	}
	return s.commit()
}
