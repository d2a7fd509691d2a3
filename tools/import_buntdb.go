package tools

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"mayfly/commands/jsondoc"
	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace"

	"github.com/tidwall/buntdb"
)

// openDatabase checks a file and loads it into a database in memory. buntdb would change the file
// itself: it cuts off a torn end, deletes what expires and rewrites the rest.
func (m *importer) openDatabase(f *os.File) (*buntdb.DB, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	expired, err := scanDatabase(io.NewSectionReader(f, 0, info.Size()), info.Size(), clock.NewSystem(0).Now())
	if err != nil {
		return nil, err
	}
	m.done[keyspace.Dead] = expired
	db, err := buntdb.Open(":memory:")
	if err != nil {
		return nil, err
	}
	err = db.Load(io.NewSectionReader(f, 0, info.Size()))
	if err == nil {
		err = checkFormat(db)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// checkFormat refuses the database of an export that did not end, or of another version.
func checkFormat(db *buntdb.DB) error {
	var text string
	err := db.View(func(tx *buntdb.Tx) (err error) {
		text, err = tx.Get(formatKey)
		return err
	})
	if errors.Is(err, buntdb.ErrNotFound) {
		return nil // no export has made it
	}
	if err != nil {
		return err
	}
	var note formatNote
	switch err := readJSON(text, &note); {
	case err != nil:
		return fmt.Errorf("key %s: %w", formatKey, err)
	case note.Version != formatVersion:
		return fmt.Errorf("the export has version %d: known is %d", note.Version, formatVersion)
	case !note.Complete:
		return errors.New("the export did not end: the database is incomplete")
	}
	return nil
}

// databaseReader imports the items of a database.
type databaseReader struct {
	*importer
	tx    *buntdb.Tx
	notes map[string]itemNote // by key
}

// readDatabase imports the containers of a database and then its items.
func (m *importer) readDatabase(db *buntdb.DB) error {
	return db.View(func(tx *buntdb.Tx) error {
		r := &databaseReader{importer: m, tx: tx, notes: make(map[string]itemNote)}
		err := r.each(func(key, value string) error {
			if strings.HasPrefix(key, ownPrefix) {
				return r.describe(key, value)
			}
			return nil
		})
		if err != nil {
			return err
		}
		number := 0
		return r.each(func(key, value string) error {
			if strings.HasPrefix(key, ownPrefix) {
				return nil
			}
			number++
			r.progress("%d keys", number)
			return r.item(key, value)
		})
	})
}

// each visits all keys in ascending order, until an error that ends the import.
func (r *databaseReader) each(visit func(key, value string) error) error {
	var failure error
	err := r.tx.Ascend("", func(key, value string) bool {
		failure = r.check(place{key: key}, visit(key, value))
		return failure == nil && r.stopped == nil
	})
	return errors.Join(err, failure, r.stopped)
}

// describe reads a key that describes items.
func (r *databaseReader) describe(key, value string) error {
	if name, ok := strings.CutPrefix(key, containerPrefix); ok {
		l, err := readLine([]byte(value))
		if err != nil {
			return err
		}
		state, ok, err := l.state()
		if err != nil {
			return err
		}
		if !ok || state.Name != name {
			return fmt.Errorf("value %s does not describe container %s", expiry.Quote(value), expiry.Quote(name))
		}
		return r.container(state)
	}
	if rest, ok := strings.CutPrefix(key, itemsPrefix); ok {
		container, _, _ := strings.Cut(rest, "/")
		return readNotes(value, func(id string, n itemNote) { r.notes[itemKey(container, id)] = n })
	}
	if key != formatKey {
		return errors.New("keys that begin with " + ownPrefix + " are reserved")
	}
	return nil
}

// item imports an item. A container that neither the database nor the target has is created with the
// default -1.
func (r *databaseReader) item(key, value string) error {
	e, err := r.entry(key, value)
	if err != nil {
		return err
	}
	at := place{key: key}
	err = r.importer.item(at, e)
	if missing, ok := errors.AsType[missingContainer](err); ok {
		created := keyspace.ContainerRecord{Name: string(missing), Created: r.Clock.Now(), Policy: expiry.Policy{Default: expiry.Forever}}
		if err := r.container(created); err != nil {
			return err
		}
		err = r.importer.item(at, e)
	}
	return err
}

func (r *databaseReader) entry(key, value string) (e entry, err error) {
	if e.container, e.id, err = splitItemKey(key); err != nil {
		return e, err
	}
	n, noted := r.notes[key]
	e.item.Kind, e.item.Body = keyspace.Document, value
	if n.Type == typeString {
		e.item.Kind = keyspace.Plain
	}
	e.item.TS, e.fresh = n.TS, n.TS == 0
	if e.fresh {
		e.item.TS = r.Clock.Now()
	}
	if _, err := e.check(); err != nil {
		return e, fmt.Errorf("value %s: %w", expiry.Quote(value), err)
	}
	if noted {
		return e, e.setEnd(n.End)
	}
	left, err := r.tx.TTL(key)
	switch {
	case errors.Is(err, buntdb.ErrNotFound): // it has expired a moment ago
		return e, e.setTTL(0)
	case err != nil || left < 0: // it has none
		return e, err
	}
	return e, e.setTTL(left)
}

// setTTL gives a document the rest of a buntdb TTL, as EXPIRE would: as its member ttl, rounded up to
// whole seconds.
func (e *entry) setTTL(left time.Duration) error {
	ttl := expiry.TTL(max(1, (left+time.Second-1)/time.Second))
	if ttl > expiry.MaxTTL {
		return fmt.Errorf("a TTL of %d seconds: legal are at most %d", ttl, expiry.MaxTTL)
	}
	doc, err := jsondoc.FromValid(e.item.Body).WithTTL(ttl, jsondoc.MaxSize)
	if err != nil {
		return err
	}
	e.item.Body, e.item.ExpireAt, e.ignored = doc.JSON, expiry.ExpireAt(e.item.TS, ttl), nil
	return nil
}
