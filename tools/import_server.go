package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace"

	"github.com/redis/go-redis/v9"
)

// serverTarget imports into a running server, many commands at a time.
type serverTarget struct {
	ctx   context.Context
	conn  *redis.Conn
	shut  func()
	clock clock.Clock
	bad   func(at place, err error) // reports what the server has refused

	policies map[string]*expiry.Policy // of containers seen so far; nil: the server has none
	selected string
	pipe     redis.Pipeliner
	sent     []place // of each command in pipe
	bytes    int     // of values in pipe
}

func newServerTarget(ctx context.Context, address string, o *serverOptions, clock clock.Clock, bad func(place, error)) (*serverTarget, error) {
	conn, shut, err := o.connect(ctx, address)
	if err != nil {
		return nil, err
	}
	return &serverTarget{ctx: ctx, conn: conn, shut: shut, clock: clock, bad: bad,
		policies: make(map[string]*expiry.Policy), pipe: conn.Pipeline()}, nil
}

func (s *serverTarget) container(state keyspace.ContainerRecord) (number uint32, err error) {
	if err := s.flush(); err != nil {
		return 0, err
	}
	p := state.Policy
	s.policies[state.Name] = &expiry.Policy{Default: p.Default, Mode: p.Mode, Hold: p.Hold}
	set := []any{"CONTAINER.SET", state.Name, "TTL", p.Default.String(), "TTLMODE", p.Mode.String()}
	if p.Deadline != "" {
		set = append(set, "DEADLINE", p.Deadline)
	}
	if p.Hold != "" {
		set = append(set, "HOLD", p.Hold)
	}
	if state.DB != 0 {
		if _, err := do(s.ctx, s.conn, append(set, "NUMBER", state.DB)...); err == nil {
			return state.DB, s.indexes(state)
		}
	}
	// Without a number, or because it is not free.
	if _, err := do(s.ctx, s.conn, set...); err != nil || state.DB == 0 {
		return 0, cmp.Or(s.judge(err), s.indexes(state))
	}
	reply, err := do(s.ctx, s.conn, "CONTAINER.GET", state.Name)
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
	there, err := indexesOf(s.ctx, s.conn, state.Name)
	if err != nil {
		return s.judge(err)
	}
	for _, paths := range state.Indexes {
		if slices.ContainsFunc(there, func(other []string) bool { return slices.Equal(other, paths) }) {
			continue
		}
		create := []any{"INDEX.CREATE", state.Name}
		for _, path := range paths {
			create = append(create, path)
		}
		if _, err := do(s.ctx, s.conn, create...); err != nil {
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
	if it.Kind == keyspace.Document {
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
		if _, err := do(s.ctx, s.conn, "SELECT", e.container); err != nil {
			return 0, s.judge(err)
		}
		s.selected = e.container
	}
	command := []any{"SET", id, it.Body}
	if it.ExpireAt > 0 {
		command = append(command, "PXAT", it.ExpireAt)
	}
	calls := [][]any{command}
	if it.ExpireAt == expiry.Never {
		calls = append(calls, []any{"PERSIST", id})
	}
	if len(calls) > 1 && policy.Hold != "" { // what a transaction has created it may change on hold
		calls = [][]any{{"MULTI"}, calls[0], calls[1], {"EXEC"}}
	}
	size := len(it.Body)
	for _, call := range calls {
		if err := s.send(at, size, call...); err != nil {
			return keyspace.Stored, err
		}
		size = 0
	}
	return keyspace.Stored, nil
}

// policy returns the policy of a container of the server; nil if it does not exist.
func (s *serverTarget) policy(name string) (*expiry.Policy, error) {
	if p, known := s.policies[name]; known {
		return p, nil
	}
	if err := s.flush(); err != nil {
		return nil, err
	}
	reply, err := do(s.ctx, s.conn, "CONTAINER.GET", name)
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

// send adds a command to the pipeline, and sends the pipeline when it is long enough.
func (s *serverTarget) send(at place, size int, command ...any) error {
	s.pipe.Do(s.ctx, command...)
	s.sent = append(s.sent, at)
	s.bytes += size
	if len(s.sent) < portionItems && s.bytes < portionBytes {
		return nil
	}
	return s.flush()
}

// flush sends the pipeline and reports what the server has refused.
func (s *serverTarget) flush() error {
	if len(s.sent) == 0 {
		return nil
	}
	sent := s.sent
	s.sent, s.bytes = nil, 0
	replies, err := s.pipe.Exec(s.ctx)
	for i, reply := range replies {
		refused := s.judge(reply.Err())
		if _, ok := errors.AsType[fatal](refused); ok {
			return refused
		}
		if refused != nil {
			s.bad(sent[i], refused)
		}
	}
	if len(replies) != len(sent) && err != nil {
		return fatal{err}
	}
	return nil
}

// judge makes errors fatal, except those with which the server has answered.
func (s *serverTarget) judge(err error) error {
	if err == nil || errors.Is(err, redis.Nil) {
		return nil
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		return err
	}
	return fatal{fmt.Errorf("the connection failed: %w", err)}
}

func (s *serverTarget) close() error {
	err := s.flush()
	s.shut()
	return err
}
