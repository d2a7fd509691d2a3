package tools

import (
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
	// A transaction is committed when its items take this many bytes.
	commitBytes = 1 << 20

	// longestTTL is the longest TTL that buntdb is told, less than the 292 years of a Duration.
	longestTTL = 200 * 365 * 24 * time.Hour
)

// databaseSink writes an export into a buntdb database. buntdb holds all of it in memory.
type databaseSink struct {
	db    *buntdb.DB
	tx    *buntdb.Tx // nil between transactions
	bytes int        // of the transaction
	wall  clock.Clock
	lines lineWriter

	policies map[string]expiry.Policy
	parts    map[string]*part // by container
}

// part is the next part of the lines of a container's items.
type part struct {
	lines         []byte
	count, number int
}

// exportDatabase lets a source write into the database in an empty file, which the caller forces to disk.
func exportDatabase(f *os.File, write func(s sink) error) (err error) {
	db, err := buntdb.Open(f.Name())
	if err != nil {
		return err
	}
	// buntdb drops the errors of its own fsync, and shrinks without one.
	if err := db.SetConfig(buntdb.Config{SyncPolicy: buntdb.Never, AutoShrinkDisabled: true}); err != nil {
		return errors.Join(err, db.Close())
	}
	s := &databaseSink{db: db, wall: clock.NewSystem(0), policies: make(map[string]expiry.Policy), parts: make(map[string]*part)}
	defer func() { err = errors.Join(err, s.rollback(), db.Close()) }()
	if err := s.setFormat(incompleteFormat); err != nil {
		return err
	}
	if err := write(s); err != nil {
		return err
	}
	for container, p := range s.parts {
		if err := s.setPart(container, p); err != nil {
			return err
		}
	}
	return s.setFormat(completeFormat)
}

func (s *databaseSink) container(c keyspace.ContainerRecord) error {
	s.policies[c.Name] = c.Policy
	line := s.lines.container(c)
	return s.set(containerPrefix+c.Name, string(line[:len(line)-1]), 0)
}

func (s *databaseSink) item(container, id string, it keyspace.Item) error {
	var ttl time.Duration
	end, capped := expiry.Cap(it.ExpireAt)
	if !capped {
		end = it.ExpireAt
	}
	if p := s.policies[container]; end > 0 && p.Default != expiry.Off && p.Hold == "" {
		ttl = databaseTTL(end, s.wall.Now())
	}
	if err := s.set(itemKey(container, id), it.Body, ttl); err != nil {
		return err
	}
	p := s.parts[container]
	if p == nil {
		p = &part{number: 1}
		s.parts[container] = p
	}
	p.lines = append(append(p.lines, ','), s.lines.note(container, id, it)...)
	if p.count++; p.count < itemsPerPart {
		return nil
	}
	return s.setPart(container, p)
}

// databaseTTL returns the TTL that makes buntdb drop an item at its end (ms), rounded up to a whole
// second. 0 means none: the end is too far away.
func databaseTTL(end, now int64) time.Duration {
	if end-now > longestTTL.Milliseconds() {
		return 0
	}
	// buntdb adds the TTL to the time it reads itself, a moment after now, and cuts off what is not a
	// whole second. Half a second keeps that moment from mattering. An end that has passed meanwhile must
	// not make it none.
	second := (end + 999) / 1000
	return max(time.Duration(second*1000-now)*time.Millisecond+time.Second/2, 1)
}

// setPart sets the key of the next part of a container's lines, if it has any.
func (s *databaseSink) setPart(container string, p *part) error {
	if p.count == 0 {
		return nil
	}
	key := fmt.Sprintf("%s%s/%06d", itemsPrefix, container, p.number)
	text := "[" + string(p.lines[1:]) + "]"
	*p = part{lines: p.lines[:0], number: p.number + 1}
	return s.set(key, text, 0)
}

// setFormat sets the key of the format in a transaction of its own.
func (s *databaseSink) setFormat(text string) error {
	if err := s.commit(); err != nil {
		return err
	}
	if err := s.set(formatKey, text, 0); err != nil {
		return err
	}
	return s.commit()
}

// set sets a key, and commits the transaction when it is large enough. A TTL of 0 is none.
func (s *databaseSink) set(key, value string, ttl time.Duration) (err error) {
	if s.tx == nil {
		if s.tx, err = s.db.Begin(true); err != nil {
			return err
		}
	}
	if _, _, err := s.tx.Set(key, value, &buntdb.SetOptions{Expires: ttl > 0, TTL: ttl}); err != nil {
		return err
	}
	const overhead = 100 // of an item in memory
	if s.bytes += len(key) + len(value) + overhead; s.bytes < commitBytes {
		return nil
	}
	return s.commit()
}

func (s *databaseSink) commit() error {
	tx := s.tx
	if s.tx, s.bytes = nil, 0; tx == nil {
		return nil
	}
	return tx.Commit()
}

func (s *databaseSink) rollback() error {
	if s.tx == nil {
		return nil
	}
	return s.tx.Rollback()
}
