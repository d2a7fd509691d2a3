package tools

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"mayfly/commands/jsondoc"
	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace"

	"github.com/gomodule/redigo/redis"
)

// serverTarget imports into a running server, many commands at a time.
type serverTarget struct {
	conn  *client
	clock clock.Clock
	bad   func(at place, err error) // reports what the server has refused

	policies map[string]*expiry.Policy // of containers seen so far; nil: the server has none
	selected string
	sent     []place // of each command whose reply was not read
	bytes    int     // of their values
}

func newServerTarget(address string, o *serverOptions, clock clock.Clock, bad func(place, error)) (*serverTarget, error) {
	conn, err := o.connect(address)
	if err != nil {
		return nil, err
	}
	return &serverTarget{conn: conn, clock: clock, bad: bad, policies: make(map[string]*expiry.Policy)}, nil
}

func (s *serverTarget) container(state keyspace.ContainerRecord) (number uint32, err error) {
	if err := s.flush(); err != nil {
		return 0, err
	}
	p := state.Policy
	s.policies[state.Name] = &expiry.Policy{Default: p.Default, Mode: p.Mode, Hold: p.Hold}
	set := []any{state.Name, "TTL", p.Default.String(), "TTLMODE", p.Mode.String()}
	if p.Deadline != "" {
		set = append(set, "DEADLINE", p.Deadline)
	}
	if p.Hold != "" {
		set = append(set, "HOLD", p.Hold)
	}
	if state.DB != 0 {
		if _, err := s.conn.do("CONTAINER.SET", append(set, "NUMBER", state.DB)...); err == nil {
			return state.DB, s.indexes(state)
		}
	}
	// Without a number, or because it is not free.
	if _, err := s.conn.do("CONTAINER.SET", set...); err != nil || state.DB == 0 {
		return 0, cmp.Or(s.judge(err), s.indexes(state))
	}
	reply, err := s.conn.do("CONTAINER.GET", state.Name)
	if err != nil {
		return 0, s.judge(err)
	}
	given, err := field[int64](reply, "number")
	return uint32(given), cmp.Or(err, s.indexes(state))
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

func (s *serverTarget) item(at place, e entry) (keyspace.Restored, error) {
	id, it := e.id, e.item
	policy, err := s.policy(e.container)
	if err != nil {
		return 0, err
	}
	if policy == nil {
		return 0, missingContainer(e.container)
	}
	// The server would start its clock again.
	if policy.Dead(it.TS, it.ExpireAt, s.clock.Now()) {
		return keyspace.Dead, nil
	}
	if it.Kind == keyspace.Document && jsondoc.IsObject(it.Body) {
		if e.keepsLeft && it.ExpireAt > 0 && policy.Default != expiry.Off {
			if err := e.setTTL(it.ExpireAt - s.clock.Now()); err != nil {
				return 0, err
			}
			it = e.item
		}
		return keyspace.Stored, s.send(at, len(it.Body), "DOC.PUT", e.container, id, it.Body)
	}
	if s.selected != e.container {
		if err := s.flush(); err != nil {
			return 0, err
		}
		if _, err := s.conn.do("SELECT", e.container); err != nil {
			return 0, s.judge(err)
		}
		s.selected = e.container
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
	transaction := policy.Hold != "" // what a transaction has created it may change on hold
	if transaction {
		err = s.send(at, 0, "MULTI")
	}
	err = cmp.Or(err, s.send(at, len(it.Body), command, set...))
	if it.ExpireAt == expiry.Never {
		err = cmp.Or(err, s.send(at, 0, "PERSIST", id))
	} else {
		err = cmp.Or(err, s.send(at, 0, "PEXPIREAT", id, it.ExpireAt))
	}
	if transaction {
		err = cmp.Or(err, s.send(at, 0, "EXEC"))
	}
	return keyspace.Stored, err
}

// policy returns the policy of a container of the server; nil if it does not exist.
func (s *serverTarget) policy(name string) (*expiry.Policy, error) {
	if p, known := s.policies[name]; known {
		return p, nil
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	reply, err := s.conn.do("CONTAINER.GET", name)
	if err != nil || reply == nil {
		return nil, s.judge(err)
	}
	text, err := field[string](reply, "ttl")
	if err != nil {
		return nil, fatal{err}
	}
	p := new(expiry.Policy)
	if p.Default, err = expiry.ParseDefault(text); err != nil {
		return nil, fatal{err}
	}
	p.Hold, _ = field[string](reply, "hold") // null for none
	s.policies[name] = p
	return p, nil
}

// send sends a command, and reads the replies when there are many.
func (s *serverTarget) send(at place, size int, command string, args ...any) error {
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
		_, err := s.conn.receive()
		refused := s.judge(err)
		if _, ok := errors.AsType[fatal](refused); ok {
			return refused
		}
		if refused != nil {
			s.bad(at, refused)
		}
	}
	return nil
}

// judge makes errors fatal, except those with which the server has answered.
func (s *serverTarget) judge(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		return err
	}
	return fatal{fmt.Errorf("the connection failed: %w", err)}
}

func (s *serverTarget) close() error {
	err := s.flush()
	s.conn.close()
	return err
}
