package tools

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
	"mayfly/keyspace/elements"

	"github.com/gomodule/redigo/redis"
)

// serverTarget imports into a running server, many commands at a time.
type serverTarget struct {
	*importer
	conn *client

	policies map[string]*expiry.Policy // of containers seen so far; nil: the server has none
	selected string
	maxValue int         // bytes of a value that the server takes
	sent     []*sentItem // of each command whose reply was not read
	bytes    int         // of their values
}

// sentItem is an item that takes one or more commands.
type sentItem struct {
	at      place
	refused bool // one of them
}

func (m *importer) newServerTarget(address string) (*serverTarget, error) {
	conn, err := m.server.connect(address)
	if err != nil {
		return nil, err
	}
	s := &serverTarget{importer: m, conn: conn, policies: make(map[string]*expiry.Policy), maxValue: math.MaxInt}
	reply, err := conn.do("CONFIG", "GET", "max-value-size")
	if _, refused := errors.AsType[redis.Error](err); refused { // the user may not know it, and the server refuses what is larger
		return s, nil
	}
	limit, _ := field[string](reply, "max-value-size")
	if err == nil {
		s.maxValue, err = strconv.Atoi(limit)
	}
	if err != nil {
		conn.close()
		return nil, err
	}
	return s, nil
}

func (s *serverTarget) container(c settings) (r received, err error) {
	if err := s.flush(); err != nil {
		return r, err
	}
	has, err := s.conn.container(c.Name)
	switch {
	case err != nil:
	case has == nil && !s.dry:
		err = s.create(&c)
	case has == nil:
	default:
		r.note, err = s.settle(&c, has)
	}
	if s.dry {
		if has == nil {
			has = &described{ContainerRecord: c.ContainerRecord}
		}
	} else if err = cmp.Or(err, s.indexes(c.ContainerRecord)); err == nil {
		has, err = s.conn.container(c.Name)
	}
	if err != nil || has == nil {
		return r, s.judge(err)
	}
	r.number = has.DB
	s.policies[c.Name] = &has.Policy
	return r, nil
}

// create creates a container, with its number if that is free.
func (s *serverTarget) create(c *settings) error {
	create := []any{c.Name, "TTL", c.Policy.Default.String(), "TTLMODE", c.Policy.Mode.String()}
	if c.Policy.Deadline != "" {
		create = append(create, "DEADLINE", c.Policy.Deadline)
	}
	err := errors.New("no number")
	if c.DB != 0 {
		_, err = s.conn.do("CONTAINER.CREATE", append(slices.Clone(create), "NUMBER", c.DB)...)
	}
	if err != nil { // or the number is not free
		_, err = s.conn.do("CONTAINER.CREATE", create...)
	}
	if err == nil && c.Policy.Hold != "" {
		_, err = s.conn.do("CONTAINER.SET", c.Name, "HOLD", c.Policy.Hold)
	}
	return err
}

// settle changes the settings of a container that exists, if that is wanted. An empty database as every
// server has it takes those of the import. The note says how they differ, or differed.
func (s *serverTarget) settle(c *settings, has *described) (note string, err error) {
	differences := c.differences(has.Policy)
	fresh := has.DB < keyspace.Databases && has.items == 0 && has.Policy == expiry.Policy{Default: expiry.Forever}
	if len(differences) == 0 || !fresh && !s.apply {
		if len(differences) > 0 {
			note = kept(differences)
		}
		return note, nil
	}
	reply, err := s.conn.do("CONTAINER.PLAN", c.Name, "TTL", c.Policy.Default.String(), "SAMPLE", 0)
	if err != nil {
		return "", err
	}
	kills, err := field[int64](reply, "kills")
	if err = cmp.Or(err, s.admit(c.Name, kills)); err != nil {
		return "", err
	}
	if s.dry {
		return would(differences, kills), c.refusedBy(has.Policy, has.items > 0)
	}
	set := []any{c.Name, "TTL", c.Policy.Default.String(), "MAXKILL", s.maxKill, "IFMATCH", has.etag}
	if c.hasMode {
		set = append(set, "TTLMODE", c.Policy.Mode.String())
	}
	if c.Policy.Deadline != "" {
		set = append(set, "DEADLINE", c.Policy.Deadline)
	}
	if c.Policy.Hold != "" && c.Policy.Hold != has.Policy.Hold {
		set = append(set, "HOLD", c.Policy.Hold)
	}
	reply, err = s.conn.do("CONTAINER.SET", set...)
	if err == nil && reply == nil {
		err = unsettled("the settings of container " + expiry.Quote(c.Name) + " have changed meanwhile: nothing was changed")
	}
	if err != nil || fresh {
		return "", err
	}
	kills, err = s.killed(c.Name)
	return changed(differences, kills), err
}

// killed returns how many items the last change of a container's default or mode has killed.
func (s *serverTarget) killed(name string) (kills int64, err error) {
	reply, err := s.conn.do("CONTAINER.HISTORY", name, "COUNT", 2) // a hold is an entry of its own
	entries, _ := reply.([]any)
	for _, entry := range entries {
		if what, _ := field[string](entry, "what"); what == string(expiry.Set) {
			kills, _ = field[int64](entry, "kills") // null: not counted
			break
		}
	}
	return kills, err
}

// indexes creates the indexes of a container that the server does not have yet.
func (s *serverTarget) indexes(state keyspace.ContainerRecord) error {
	if len(state.Indexes) == 0 {
		return nil
	}
	there, err := indexesOf(s.conn, state.Name)
	if err != nil {
		return s.judge(err)
	}
	for _, paths := range state.Indexes {
		if slices.ContainsFunc(there, func(other []string) bool { return slices.Equal(other, paths) }) {
			continue
		}
		create := []any{state.Name}
		for _, path := range paths {
			create = append(create, path)
		}
		if _, err := s.conn.do("INDEX.CREATE", create...); err != nil {
			return s.judge(err)
		}
	}
	return nil
}

func (s *serverTarget) item(from place, e entry) (keyspace.Restored, error) {
	at, id, it := &sentItem{at: from}, e.id, e.item
	policy, err := s.policy(e.container)
	if err != nil {
		return 0, err
	}
	if policy == nil {
		return 0, missingContainer(e.container)
	}
	now := s.Clock.Now()
	// The server would start its clock again.
	if policy.Dead(it.TS, it.ExpireAt, now) {
		return keyspace.Dead, nil
	}
	if size := longest(it); size > s.maxValue {
		return 0, fmt.Errorf("a value of %d bytes: max-value-size of %s allows %d", size, s.conn.address, s.maxValue)
	}
	keeps := s.keepTimes && !e.fresh
	if s.dry && policy.Hold != "" {
		there, err := s.written(e.container, id)
		switch {
		case err != nil:
			return 0, err
		case there != 0 && keeps && it.Kind == keyspace.Document:
			return e.kept(policy.Hold, there)
		case there != 0: // the one of the import counts as written now
			return e.kept(policy.Hold, 0)
		}
	}
	if it.Kind == keyspace.Document && (jsondoc.IsObject(it.Body) || keeps && it.ExpireAt == expiry.Inherit) {
		put := []any{e.container, id, it.Body}
		if keeps {
			put = append(put, "TS", it.TS)
		} else if e.keepsLeft && it.ExpireAt > 0 && policy.Default != expiry.Off {
			if err := e.setTTL(it.ExpireAt - now); err != nil {
				return 0, err
			}
			put[2] = e.item.Body
		}
		doc := jsondoc.FromValid(e.item.Body, policy.Deadline)
		if err := doc.Check(policy, now); err != nil {
			return 0, err
		}
		if doc.Passed(policy, now) {
			return keyspace.Dead, nil
		}
		return keyspace.Stored, s.send(at, len(it.Body), "DOC.PUT", put...)
	}
	if s.selected != e.container && !s.dry {
		if err := s.flush(); err != nil {
			return 0, err
		}
		if _, err := s.conn.do("SELECT", e.container); err != nil {
			return 0, s.judge(err)
		}
		s.selected = e.container
	}
	if it.Kind.IsCollection() {
		return keyspace.Stored, s.collection(at, id, it, policy.Hold != "")
	}
	isDocument := it.Kind == keyspace.Document
	command, set := "SET", []any{id, it.Body}
	if isDocument {
		command, set = "JSON.SET", []any{id, "$", it.Body}
	}
	if !isDocument && it.ExpireAt > 0 {
		set = append(set, "PXAT", it.ExpireAt)
	}
	if it.ExpireAt != expiry.Never && !(isDocument && it.ExpireAt > 0) {
		return keyspace.Stored, s.send(at, len(it.Body), command, set...)
	}
	// The end of a value that is refused would become that of the one before. On hold, what a transaction has
	// created it may change.
	err = cmp.Or(s.send(at, 0, "MULTI"), s.send(at, len(it.Body), command, set...))
	if it.ExpireAt == expiry.Never {
		err = cmp.Or(err, s.send(at, 0, "PERSIST", id))
	} else {
		err = cmp.Or(err, s.send(at, 0, "PEXPIREAT", id, it.ExpireAt))
	}
	return keyspace.Stored, cmp.Or(err, s.send(at, 0, "EXEC"))
}

// written returns when an item of the server was written (ms), 0 if it does not exist.
func (s *serverTarget) written(container, id string) (ts int64, err error) {
	reply, err := s.conn.do("DOC.EXPLAIN", container, id)
	if err == nil {
		ts, _ = field[int64](reply, "ts") // null: there is none
	}
	if _, refused := errors.AsType[redis.Error](err); refused { // there is no such container yet
		return 0, nil
	}
	return ts, s.judge(err)
}

// longest returns the length in bytes of an item's longest value: a server closes the connection on which a
// longer one than it takes begins.
func longest(it keyspace.Item) (size int) {
	if !it.Kind.IsCollection() {
		return len(it.Body)
	}
	for e := range elements.Each(it.Body) {
		size = max(size, len(e.Field), len(e.Value))
	}
	return size
}

// collection sends a collection in one transaction if it fits a portion, so that a refusal leaves the key as
// it was. A larger one comes in pieces under a temporary key, which gets its name at the end. On hold any
// comes in one transaction, since what that has created it may change.
func (s *serverTarget) collection(at *sentItem, id string, it keyspace.Item, held bool) (err error) {
	send := func(size int, command string, args ...any) {
		if err == nil {
			err = s.send(at, size, command, args...)
		}
	}
	key := id
	whole := held || len(it.Body) <= portionBytes && elements.SumOf(it.Body).Count <= portionItems
	if whole {
		send(0, "MULTI")
		send(0, "DEL", key)
	} else {
		key = temporaryKey(id)
	}
	add := map[keyspace.Kind]string{
		keyspace.HashKind: "HSET", keyspace.SetKind: "SADD", keyspace.ZSetKind: "ZADD", keyspace.ListKind: "RPUSH",
	}[it.Kind]
	args, size := []any{key}, 0
	for e := range elements.Each(it.Body) {
		switch it.Kind {
		case keyspace.HashKind:
			args = append(args, e.Field, e.Value)
		case keyspace.ZSetKind:
			args = append(args, e.Value, e.Field)
		default:
			args = append(args, e.Field)
		}
		if size += e.Size(); len(args) > portionItems || size > portionBytes || e.End != 0 {
			send(size, add, args...)
			args, size = []any{key}, 0
		}
		if e.End != 0 && it.Kind == keyspace.HashKind {
			send(0, "HPEXPIREAT", key, e.End, "FIELDS", 1, e.Field)
		} else if e.End != 0 {
			send(0, "EXPIREMEMBERAT", key, e.Field, e.End, "ms")
		}
	}
	if len(args) > 1 {
		send(size, add, args...)
	}
	switch {
	case it.ExpireAt == expiry.Never:
		send(0, "PERSIST", key)
	case it.ExpireAt > 0:
		send(0, "PEXPIREAT", key, it.ExpireAt)
	}
	if whole {
		send(0, "EXEC")
		return err
	}
	if err = cmp.Or(err, s.flush()); !at.refused {
		send(0, "RENAME", key, id)
	}
	send(0, "DEL", key) // it is there if something was refused
	if err != nil {
		err = fatal{fmt.Errorf("%w; the key %s may be left of %s", err, expiry.Quote(key), expiry.Quote(id))}
	}
	return err
}

// temporaryKey returns a key that no other has, in the partition of a key, where RENAME takes constant time.
func temporaryKey(key string) string {
	name := ":import:" + rand.Text()
	if !strings.ContainsAny(key, "{}") {
		key = "{" + key + "}"
	}
	return key[:min(len(key), keyspace.MaxIDLength-len(name))] + name
}

// policy returns the policy of a container of the server; nil if it does not exist.
func (s *serverTarget) policy(name string) (*expiry.Policy, error) {
	if p, known := s.policies[name]; known {
		return p, nil
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	has, err := s.conn.container(name)
	if err != nil || has == nil {
		return nil, s.judge(err)
	}
	s.policies[name] = &has.Policy
	return &has.Policy, nil
}

// send sends a command, and reads the replies when there are many.
func (s *serverTarget) send(at *sentItem, size int, command string, args ...any) error {
	if s.dry {
		return nil
	}
	if err := s.conn.send(command, args...); err != nil {
		return s.judge(err)
	}
	s.sent = append(s.sent, at)
	s.bytes += size
	if len(s.sent) < portionItems && s.bytes < portionBytes {
		return nil
	}
	return s.flush()
}

// flush reads the replies of what was sent and reports what the server has refused.
func (s *serverTarget) flush() error {
	sent := s.sent
	s.sent, s.bytes = nil, 0
	for _, at := range sent {
		reply, err := s.conn.receive()
		err = s.judge(err)
		if _, ok := errors.AsType[fatal](err); ok {
			return err
		}
		switch {
		case err != nil:
			if !at.refused {
				at.refused = true
				s.refused(at.at, err)
			}
		case reply == nil: // of DOC.PUT … TS
			s.done[keyspace.Stored]--
			s.done[keyspace.Newer]++
		}
	}
	return nil
}

// judge makes errors fatal, except those that concern one container or item.
func (s *serverTarget) judge(err error) error {
	if err == nil {
		return nil
	}
	if moved := s.conn.passedOn(err); moved != nil {
		return fatal{moved}
	}
	_, refused := errors.AsType[redis.Error](err)
	if _, ok := errors.AsType[unsettled](err); ok || refused {
		return err
	}
	if unknown, ok := errors.AsType[unknownCommand](err); ok {
		return fatal{unknown}
	}
	return fatal{fmt.Errorf("the connection failed: %w", err)}
}

func (s *serverTarget) close() error {
	err := s.flush()
	s.conn.close()
	return err
}
