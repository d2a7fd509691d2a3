package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// Scripts that libraries for locks and limiters send.
const (
	// luaRelease removes a lock if it is still that of its owner.
	luaRelease = `if redis.call("get",KEYS[1])==ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`

	// luaLimit counts in a window that begins with the first call.
	luaLimit = `local n = redis.call("INCR",KEYS[1])
if n == 1 then redis.call("PEXPIRE",KEYS[1],ARGV[1]) end
return n`
)

// The commands of redis-benchmark that call them.
var (
	releaseOthers = []string{"EVALSHA", sha(luaRelease), "1", anyID, "token"} // finds a key with another value
	limit         = []string{"EVALSHA", sha(luaLimit), "1", "limit:__rand_int__", "60000"}
)

// withLua returns a job that loads a script first.
func withLua(script string, j job) job { return after([]any{"SCRIPT", "LOAD", script}, j) }

// locks returns a job that takes and releases locks in pipelines of depth commands, as owners do that
// compete with no one. The sample has the locks a second and the server's CPU time for each, in seconds.
func locks(depth int) job {
	return func(ctx context.Context, c *comparison, s *server) (sample, error) {
		conns, closeConns, err := dial(ctx, s.addr, connections)
		if err != nil {
			return nil, err
		}
		defer closeConns()
		before, err := s.cpu()
		if err != nil {
			return nil, err
		}
		counts, failures := make([]int, connections), make([]error, connections)
		began := time.Now()
		end := began.Add(c.span(1500 * time.Millisecond))
		var all sync.WaitGroup
		for i, conn := range conns {
			all.Go(func() {
				for n := 0; failures[i] == nil && time.Now().Before(end); n += depth / 2 {
					counts[i], failures[i] = n+depth/2, conn.lockAndRelease(i, n, depth/2)
				}
			})
		}
		all.Wait()
		took := time.Since(began)
		after, err := s.cpu()
		if err = errors.Join(append(failures, ctx.Err(), err)...); err != nil {
			return nil, err
		}
		sum := 0
		for _, n := range counts {
			sum += n
		}
		return sample{float64(sum) / took.Seconds(), (after - before).Seconds() / float64(sum)}, nil
	}
}

// lockAndRelease takes and releases n locks in one pipeline and checks the replies. owner and first make
// their names.
func (conn bufferedConn) lockAndRelease(owner, first, n int) error {
	const names = 1000 // of an owner
	var out []byte
	for i := first; i < first+n; i++ {
		name, token := fmt.Sprintf("lock:%d:%d", owner, i%names), strconv.Itoa(i)
		out = appendCommand(out, "SET", name, token, "NX", "PX", "30000")
		out = appendCommand(out, "EVALSHA", sha(luaRelease), "1", name, token)
	}
	if _, err := conn.Write(out); err != nil {
		return err
	}
	for range n {
		taken, err := readReply(conn.in)
		if err != nil {
			return err
		}
		released, err := readReply(conn.in)
		if err != nil {
			return err
		}
		if taken.kind != '+' || released.n != 1 {
			return fmt.Errorf("a lock was not taken (%c) or not released (%d)", taken.kind, released.n)
		}
	}
	return nil
}
