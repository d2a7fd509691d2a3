package nodes

import (
	"context"
	"math"
	"time"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/redisfmt"
)

// Errors of Redis.
const (
	ErrWaitAtReplica    = engine.Error("ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.")
	errWaitAOFAtReplica = engine.Error("ERR WAITAOF cannot be used with replica instances. Please also note that writes to replicas are just local and are not propagated.")
	errNumLocal         = engine.Error("ERR value is out of range, value must between 0 and 1")
)

// WaitCommand counts the nodes that have a client's writes.
var WaitCommand = engine.Command{
	Name: "wait", Syntax: "numreplicas timeout", Since: "3.0.0",
	Summary: "Wait for the synchronous replication of all the write commands sent in the context of the current connection",
	Differs: "A reply means a majority already; this counts the other nodes that have it on disk. Without a cluster it replies 0 at once, as no replica can come",
	Flags:   engine.NoScript | engine.Waits | engine.OnLeader, Categories: "connection", Tips: "request_policy:all_shards response_policy:agg_min",
	AtFollower: ErrWaitAtReplica,
	Parse:      parseWait,
}

// WaitAOFCommand is WaitCommand, and forces the writes to the disk of this node too.
var WaitAOFCommand = engine.Command{
	Name: "waitaof", Syntax: "numlocal numreplicas timeout", Since: "7.2.0",
	Summary: "Blocks until all of the preceding write commands sent by the connection are written to the append-only file of the master and/or replicas",
	Differs: "With `numlocal` 1 it forces the writes to disk at once, whatever `appendfsync` says. Other nodes count as for `WAIT`",
	Flags:   WaitCommand.Flags, Categories: WaitCommand.Categories, Tips: "request_policy:all_shards response_policy:agg_min",
	AtFollower: errWaitAOFAtReplica,
	Parse:      parseWaitAOF,
}

func parseWait(in *engine.Input) (engine.Run, error) {
	n, ok := redisfmt.ParseInt(in.Args[1])
	if !ok {
		return nil, engine.ErrNotInteger
	}
	limit, err := parseLimit(in.Args[2])
	return awaited(false, n, limit, func(_ bool, others int) engine.Reply { return engine.Count(others) }), err
}

func parseWaitAOF(in *engine.Input) (engine.Run, error) {
	local, ok := redisfmt.ParseInt(in.Args[1])
	if !ok {
		return nil, engine.ErrNotInteger
	}
	if local < 0 || local > 1 {
		return nil, errNumLocal
	}
	n, ok := redisfmt.ParseInt(in.Args[2])
	if !ok {
		return nil, engine.ErrNotInteger
	}
	if n < 0 {
		return nil, items.ErrNotPositive
	}
	limit, err := parseLimit(in.Args[3])
	return awaited(local == 1, n, limit, func(synced bool, others int) engine.Reply {
		return engine.Array(engine.Flag(synced), engine.Count(others))
	}), err
}

// parseLimit parses the milliseconds for which a client waits; 0: without a limit.
func parseLimit(text string) (time.Duration, error) {
	ms, err := items.ParseTimeout(text)
	if ms > math.MaxInt64/int64(time.Millisecond) { // as in Redis legal, and as good as no limit
		ms = 0
	}
	return time.Duration(ms) * time.Millisecond, err
}

// ended is a context for those who ask what is reached, and do not wait.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// awaited waits until the writes of the session are on n other nodes, and with local on the disk of this one.
// Without a cluster it waits for no others. reply makes the reply of what is reached.
func awaited(local bool, n int64, limit time.Duration, reply func(synced bool, others int) engine.Reply) engine.Run {
	return func(x *engine.Context) engine.Reply {
		e, covers := x.Engine, x.Session.Revealed
		reached := func(disk, nodes context.Context) (engine.Reply, bool) {
			ks, synced, others := e.Keyspace(), false, 0
			if ks != nil {
				err := ks.WaitSynced(disk, covers)
				if synced = err == nil; !synced && disk.Err() == nil {
					return engine.Fail(engine.CommitFailure(err, false)), false
				}
			}
			if e.Cluster != nil {
				others = e.Cluster.Replicated(nodes, int(min(max(n, 0), math.MaxInt32)))
			}
			return reply(synced, others), ks != nil && !ks.Leads() // then the next leader knows who has what
		}
		if x.Queued || e.Cluster == nil && !local {
			now, _ := reached(ended, ended)
			return now
		}
		x.Outside = func() (engine.Reply, bool) {
			if err := e.Wait(covers, e.Deadline(0)); err != nil {
				return engine.Fail(engine.CommitFailure(err, false)), false
			}
			ctx, cancel := patience(x.Session, limit)
			defer cancel()
			if !local {
				return reached(ended, ctx)
			}
			return reached(ctx, ctx)
		}
		return engine.Reply{}
	}
}

// abandonedEvery is the time between two checks that the client of a command is still there that waits for
// other nodes.
const abandonedEvery = 100 * time.Millisecond

// patience returns a context that ends with the session, or after a limit; 0: none. The caller cancels it.
func patience(s *engine.Session, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		limit = math.MaxInt64
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	if s.Abandoned == nil {
		return ctx, cancel
	}
	go func() {
		ticker := time.NewTicker(abandonedEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if s.Abandoned() {
					cancel()
					return
				}
			}
		}
	}()
	return ctx, cancel
}
