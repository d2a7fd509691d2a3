package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/cluster"
	"mayfly/cluster/forming"
	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/keyspace/replica"
	"mayfly/server"
	"mayfly/server/config"

	"github.com/rs/zerolog"
)

// startNode starts the server as a node of a cluster, in the background.
func startNode(options *config.Config, srv *server.Server, engine *engine.Engine, log zerolog.Logger, loaded *atomic.Int64) (*storage, error) {
	settings := options.Settings()
	c := &settings.Cluster
	peers := make([]forming.Peer, len(c.Peers))
	for i, p := range c.Peers {
		peers[i] = forming.Peer{Name: p.Name, Addr: p.Addr}
	}
	served := make(chan struct{})
	serve := sync.OnceFunc(func() { close(served) })
	node, err := cluster.New(cluster.Options{
		Dir: settings.Dir, Name: c.ID, Peers: peers,
		Addr: c.Addr, ClientAddr: settings.ClientAddr(), MasterName: c.Name, Partitions: settings.Partitions,
		NodeTimeout: c.NodeTimeout, ReadIndex: c.ReadIndex, LogSize: c.LogSize,
		CertFile: c.CertFile, KeyFile: c.KeyFile, CACertFile: c.CACertFile, SecretFile: c.SecretFile,
		Open: func(r replica.Replicator) (*keyspace.Keyspace, error) {
			return openKeyspace(options.Settings(), engine, log, loaded, r)
		},
		Serve: func(ks *keyspace.Keyspace) {
			engine.SetKeyspace(ks)
			// CONFIG SET may have changed them since Open, when the engine had another keyspace.
			if err := applySettings(ks, options.Settings()); err != nil {
				log.Error().Err(err).Msg("cannot apply the settings to the keyspace")
			}
			serve()
		},
		Suspend:  engine.Suspend,
		Changed:  engine.LeaderChanged,
		Answered: engine.AwaitAnswered,

		Messages: engine.ReceiveMessages, EventsWanted: engine.EventsWanted, ServeClient: srv.ServeClient,
		Users: func() string { return srv.Users().Table().Digest() },

		Log: log,
	})
	if err != nil {
		return nil, err
	}
	engine.Cluster = node
	engine.SetProxy(c.Proxy)
	engine.SetBus(node.Bus())
	node.Start()
	return &storage{
		ready: served,
		beforeStop: func(ctx context.Context) {
			if node.StepDown(ctx) && len(srv.Sessions()) > 0 {
				redirect(ctx, engine)
			}
		},
		close: func() error { return node.Close(true) },
		halt:  func() error { return node.Close(false) },
	}, nil
}

// redirectTime is how long a former leader goes on to tell its clients who leads, before it stops. They come
// back as soon as their connections end. longestRedirect is the time for those that go on to ask.
const (
	redirectTime    = 500 * time.Millisecond
	longestRedirect = 1500 * time.Millisecond
)

// redirect waits for the redirectTime, and until clients ask no more. Libraries for clusters learn of another
// leader by MOVED: one that finds the address of the last leader closed may ask nobody else for a minute.
func redirect(ctx context.Context, engine *engine.Engine) {
	longest, cancel := context.WithTimeout(ctx, longestRedirect)
	defer cancel()
	timer := time.NewTimer(redirectTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		engine.AwaitQuiet(longest)
	case <-longest.Done():
	}
}
