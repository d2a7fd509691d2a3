package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/json/jsondoc"
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
	expired, far, err := scanDatabase(io.NewSectionReader(f, 0, info.Size()), info.Size(), clock.NewSystem(0).Now())
	if err != nil {
		return nil, err
	}
	m.done[keyspace.Dead], m.far = expired, far
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
	return db.View(func(tx *buntdb.Tx) error {
		switch text, err := tx.Get(formatKey); {
		case errors.Is(err, buntdb.ErrNotFound): // no export has made it
			return nil
		case err != nil || text == completeFormat:
			return err
		case text == incompleteFormat:
			return errors.New("the export did not end: the database is incomplete")
		default:
			return fmt.Errorf("key %s: unknown format %s: known is %s", formatKey, expiry.Quote(text), completeFormat)
		}
	})
}

// databaseReader imports the items of a database.
type databaseReader struct {
	*importer
	tx    *buntdb.Tx
	notes map[string]note // by key
}

// note holds what the key and the value of an item do not tell.
type note struct {
	ts      int64
	end     *int64
	kind    keyspace.Kind // 0: a document
	ignored bool
}

// readDatabase imports the containers of a database and then its items.
func (m *importer) readDatabase(db *buntdb.DB) error {
	return db.View(func(tx *buntdb.Tx) error {
		r := &databaseReader{importer: m, tx: tx, notes: make(map[string]note)}
		if err := r.each(true, r.readReserved); err != nil {
			return err
		}
		if err := r.each(false, r.item); err != nil {
			return err
		}
		return r.dropped()
	})
}

// dropped reports the keys that buntdb did not load because their end overflows its time.
func (r *databaseReader) dropped() error {
	for _, key := range slices.Sorted(maps.Keys(r.far)) {
		if _, err := r.tx.Get(key, true); !errors.Is(err, buntdb.ErrNotFound) {
			continue
		}
		if err := r.check(place{key: key}, checkTTL(r.far[key])); err != nil {
			return err
		}
	}
	return r.stopped
}

// each visits the keys that describe items, or the items, in ascending order, until an error ends the import.
func (r *databaseReader) each(own bool, visit func(key, value string) error) error {
	var failure error
	err := r.tx.Ascend("", func(key, value string) bool {
		if strings.HasPrefix(key, ownPrefix) == own {
			r.status.Count(int(r.done[keyspace.Stored]), "items")
			failure = r.check(place{key: key}, visit(key, value))
		}
		return failure == nil && r.stopped == nil
	})
	return errors.Join(err, failure, r.stopped)
}

// readReserved reads a key that describes items or containers.
func (r *databaseReader) readReserved(key, value string) error {
	if name, ok := strings.CutPrefix(key, containerPrefix); ok {
		l, err := readLine([]byte(value))
		if err != nil {
			return err
		}
		state, ok, err := l.state()
		if err == nil && (!ok || state.Name != name) {
			err = fmt.Errorf("value %s does not describe container %s", expiry.Quote(value), expiry.Quote(name))
		}
		if err != nil {
			return err
		}
		return r.container(state)
	}
	if strings.HasPrefix(key, itemsPrefix) {
		var lines []json.RawMessage
		err := json.Unmarshal([]byte(value), &lines)
		for i := 0; i < len(lines) && err == nil; i++ {
			err = r.note(lines[i])
		}
		return err
	}
	if key != formatKey {
		return errors.New("keys that begin with " + ownPrefix + " are reserved")
	}
	return nil
}

// note reads the line of an item without its body.
func (r *databaseReader) note(text []byte) error {
	l, err := readLine(text)
	if err != nil {
		return err
	}
	id, err := either("id", l.ID, l.ID64)
	_, kind, wrong := l.collection()
	if l.Value != nil {
		kind = keyspace.Plain
	}
	r.notes[itemKey(l.Container, id)] = note{l.TS, l.End, kind, l.Ignored}
	return errors.Join(err, wrong)
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
		created := settings{ContainerRecord: keyspace.ContainerRecord{Name: string(missing), Created: r.Clock.Now(), Policy: expiry.Policy{Default: expiry.Forever}}}
		if err := r.container(created); err != nil {
			return err
		}
		err = r.importer.item(at, e)
	}
	return err
}

// entry returns the item of a key. Without a note it is a document whose end is the buntdb TTL.
func (r *databaseReader) entry(key, value string) (e entry, err error) {
	container, id, ok := strings.Cut(key, "/")
	if !ok {
		return e, errors.New("no container: legal keys are container/id")
	}
	if err := validName(container); err != nil {
		return e, err
	}
	n, noted := r.notes[key]
	l := line{Container: container, ID: &id, TS: n.ts, End: n.end, Ignored: n.ignored}
	text, _ := l.bodyOf(n.kind)
	*text = &value
	if e, err = l.entry(r.Clock.Now()); err != nil {
		return e, fmt.Errorf("value %s: %w", expiry.Quote(value), err)
	}
	if noted {
		return e, nil
	}
	if left, ok := r.far[key]; ok {
		return e, checkTTL(left)
	}
	left, err := r.tx.TTL(key)
	switch {
	case errors.Is(err, buntdb.ErrNotFound): // it has expired a moment ago
		return e, e.setTTL(0)
	case err != nil || left < 0: // it has none
		return e, err
	}
	return e, e.setTTL(int64((left-1)/time.Millisecond) + 1)
}

// checkTTL refuses a TTL in seconds that no document can have.
func checkTTL(seconds int64) error {
	if seconds > int64(expiry.MaxTTL) {
		return fmt.Errorf("a TTL of %d seconds: legal are at most %d", seconds, expiry.MaxTTL)
	}
	return nil
}

// setTTL gives a document the rest of a buntdb TTL in ms, as EXPIRE would: as its member ttl, rounded up to
// whole seconds. That of a document that is not an object is a moment.
func (e *entry) setTTL(left int64) error {
	if !jsondoc.IsObject(e.item.Body) {
		e.item.ExpireAt = e.item.TS + max(1, left)
		return nil
	}
	seconds := left / 1000
	if left%1000 > 0 {
		seconds++
	}
	seconds = max(1, seconds)
	if err := checkTTL(seconds); err != nil {
		return err
	}
	ttl := expiry.TTL(seconds)
	doc, err := jsondoc.FromValid(e.item.Body, "").WithTTL(ttl, jsondoc.MaxSize)
	if err != nil {
		return err
	}
	e.item.Body, e.item.ExpireAt, e.ignored = doc.JSON, expiry.ExpireAt(e.item.TS, ttl), nil
	return nil
}
