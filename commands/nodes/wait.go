package nodes

import (
	"context"
	"math"
	"time"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/redisfmt"
)

const ErrWaitAtReplica = engine.Error("ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.")

// WaitCommand counts the nodes that have a client's writes.
var WaitCommand = engine.Command{
	Name: "wait", Syntax: "numreplicas timeout", Since: "3.0.0",
	Summary: "Wait for the synchronous replication of all the write commands sent in the context of the current connection",
	Differs: "A reply means a majority already; this counts the other nodes that have it on disk. Without a cluster it replies 0 at once, as no replica can come",
	Flags:   engine.NoScript | engine.Waits | engine.OnLeader, Categories: "connection", Tips: "request_policy:all_shards response_policy:agg_min",
	AtFollower: ErrWaitAtReplica,
	Parse:      parseWait,
}

func parseWait(in *engine.Input) (engine.Run, error) {
	n, ok := redisfmt.ParseInt(in.Args[1])
	if !ok {
		return nil, engine.ErrNotInteger
	}
	ms, err := items.ParseTimeout(in.Args[2])
	if err != nil {
		return nil, err
	}
	if ms > math.MaxInt64/int64(time.Millisecond) { // as in Redis legal, and as good as no limit
		ms = 0
	}
	return func(x *engine.Context) engine.Reply {
		e := x.Engine
		if e.Cluster == nil {
			return engine.Integer(0)
		}
		if x.Queued {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return engine.Count(e.Cluster.Replicated(ctx, 0))
		}
		covers := x.Session.Revealed
		x.Outside = func() (engine.Reply, bool) {
			if err := e.Wait(covers, e.Deadline(0)); err != nil {
				return engine.Fail(engine.CommitFailure(err, false)), false
			}
			ctx, cancel := patience(x.Session, time.Duration(ms)*time.Millisecond)
			defer cancel()
			reached := e.Cluster.Replicated(ctx, int(min(max(n, 0), math.MaxInt32)))
			ks := e.Keyspace()
			return engine.Count(reached), ks != nil && !ks.Leads() // then the next leader knows who has what
		}
		return engine.Reply{}
	}, nil
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
