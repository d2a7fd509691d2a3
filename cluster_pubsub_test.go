package main

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// heard are the messages of a subscriber, in the order in which they came.
type heard struct {
	name string

	mu   sync.Mutex // protects list
	list []string
}

func (h *heard) add(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, text)
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.list)
}

func (h *heard) has(text string) bool { return slices.Contains(h.all(), text) }

// listen subscribes at a node, over a connection of its own, and returns what it hears: the payloads.
func (n *node) listen(name string, subscribe func(context.Context, *redis.PubSub) error) *heard {
	n.t.Helper()
	client := redis.NewClient(&redis.Options{Addr: n.client, MaxRetries: -1, ReadTimeout: patience})
	sub := client.Subscribe(n.t.Context())
	n.t.Cleanup(func() { sub.Close(); client.Close() })
	if err := subscribe(n.t.Context(), sub); err != nil {
		n.t.Fatal(err)
	}
	if _, err := sub.Receive(n.t.Context()); err != nil {
		n.t.Fatalf("%s: %v", name, err)
	}
	return follow(n.t, name, sub)
}

// follow notes what a subscription brings.
func follow(t *testing.T, name string, sub *redis.PubSub) *heard {
	h := &heard{name: name}
	messages := sub.Channel(redis.WithChannelSize(100_000))
	go func() {
		for m := range messages {
			h.add(m.Payload)
		}
	}()
	return h
}

// TestClusterPubSub publishes at each node and subscribes at each, with clients of four kinds, while nodes are killed and the
// lead is passed on. A message reaches each subscriber of a node that is up, once and in order.
func TestClusterPubSub(t *testing.T) {
	c := startNodes(t, 3, "--notify-keyspace-events", "KEA")
	ctx := t.Context()
	plain := func(channels ...string) func(context.Context, *redis.PubSub) error {
		return func(ctx context.Context, s *redis.PubSub) error { return s.Subscribe(ctx, channels...) }
	}
	subscribers, events := map[*node][]*heard{}, map[*node]*heard{}
	clients := map[*node]*redis.Client{}
	for _, n := range c.all {
		clients[n] = n.connect()
		defer clients[n].Close()
		subscribers[n] = []*heard{
			n.listen("SUBSCRIBE at "+n.name, plain("news")),
			n.listen("PSUBSCRIBE at "+n.name, func(ctx context.Context, s *redis.PubSub) error { return s.PSubscribe(ctx, "new*") }),
			n.listen("SSUBSCRIBE at "+n.name, func(ctx context.Context, s *redis.PubSub) error { return s.SSubscribe(ctx, "news") }),
		}
		events[n] = n.listen("events at "+n.name, plain("__keyevent@0__:expired"))
	}
	number := 0
	everyone := func(when string, up ...*node) {
		t.Helper()
		for _, from := range up {
			number++
			text := fmt.Sprintf("%06d from %s %s", number, from.name, when)
			if n, err := clients[from].Publish(ctx, "news", text).Result(); err != nil || n < 2 {
				t.Errorf("PUBLISH at %s %s: %d receivers (%v)", from.name, when, n, err)
			}
			// A channel and a shard channel of the same name are two.
			if n, err := clients[from].SPublish(ctx, "news", text).Result(); err != nil || n < 1 {
				t.Errorf("SPUBLISH at %s %s: %d receivers (%v)", from.name, when, n, err)
			}
			for _, to := range up {
				for _, h := range subscribers[to] {
					c.await(fmt.Sprintf("%q: %s", text, h.name), func() bool { return h.has(text) })
				}
			}
		}
	}
	die := func(when string, up ...*node) {
		t.Helper()
		number++
		key := fmt.Sprintf("dies %d %s", number, when)
		c.await("a write "+when, func() bool {
			return c.leader().connectAnd(func(r *redis.Client) error { return r.Set(ctx, key, 1, 20*time.Millisecond).Err() }) == nil
		})
		for _, n := range up {
			c.await(fmt.Sprintf("%s: the death of %q", events[n].name, key), func() bool { return events[n].has(key) })
		}
	}
	probe := func() { // messages are lost until the nodes have connected
		t.Helper()
		for _, from := range c.all {
			for _, to := range c.all {
				c.await(fmt.Sprintf("%s to hear %s", to.name, from.name), func() bool {
					number++
					text := fmt.Sprint("probe ", number)
					clients[from].Publish(ctx, "news", text)
					for range 20 {
						if subscribers[to][0].has(text) {
							return true
						}
						time.Sleep(5 * time.Millisecond)
					}
					return false
				})
			}
		}
	}
	probe()
	everyone("at first", c.all...)
	die("at first", c.all...)

	do(c, "CLUSTER", "TRANSFER")
	everyone("after a transfer", c.all...)
	die("after a transfer", c.all...)

	killed := c.leader()
	killed.kill()
	others := slices.DeleteFunc(slices.Clone(c.all), func(n *node) bool { return n == killed })
	everyone("while no node leads", others...)
	c.leader()
	die("after a kill", others...)
	killed.start()
	killed.awaitServing()
	subscribers[killed] = []*heard{killed.listen("SUBSCRIBE at "+killed.name+" again", plain("news"))}
	probe()
	everyone("after the node is back", others...)

	// Many messages of each node: in order, none twice.
	var publishers sync.WaitGroup
	const many = 2000
	for _, n := range c.all {
		publishers.Go(func() {
			for i := 0; i < many; i += 100 {
				_, err := clients[n].Pipelined(ctx, func(p redis.Pipeliner) error {
					for j := range 100 {
						p.Publish(ctx, "news", fmt.Sprintf("many %s %06d", n.name, i+j))
					}
					return nil
				})
				if err != nil {
					t.Errorf("PUBLISH at %s: %v", n.name, err)
				}
			}
		})
	}
	publishers.Wait()
	for _, to := range c.all {
		h := subscribers[to][0]
		for _, from := range c.all {
			c.await(h.name+": the last message of "+from.name, func() bool { return h.has(fmt.Sprintf("many %s %06d", from.name, many-1)) })
			var got []string
			for _, text := range h.all() {
				if strings.HasPrefix(text, "many "+from.name) {
					got = append(got, text)
				}
			}
			if !slices.IsSorted(got) || len(got) != many || len(slices.Compact(got)) != many {
				t.Errorf("%s: %d messages of %s, want %d in order", h.name, len(got), from.name, many)
			}
		}
	}
	for n, list := range subscribers {
		for _, h := range list {
			seen := map[string]int{}
			for _, text := range h.all() {
				seen[text]++
			}
			for _, text := range slices.Sorted(maps.Keys(seen)) {
				if seen[text] > 1 {
					t.Errorf("%s, node %s: %q came %d times", h.name, n.name, text, seen[text])
				}
			}
		}
	}
}

// connectAnd calls f with a client of the node.
func (n *node) connectAnd(f func(*redis.Client) error) error {
	client := n.connect()
	defer client.Close()
	return f(client)
}

// TestClusterPubSubClients subscribes as programs do, with the clients for clusters, each at a node of its choice. They hear what
// is published at each node.
func TestClusterPubSubClients(t *testing.T) {
	c := startNodes(t, 3, "--notify-keyspace-events", "KEA")
	var addrs []string
	for _, n := range c.all {
		addrs = append(addrs, n.client)
	}
	heardBy := map[string]*heard{}
	goClient := c.clusterClient()
	defer goClient.Close()
	for _, kind := range []string{"plain", "sharded"} {
		sub := goClient.Subscribe(t.Context(), "news")
		if kind == "sharded" {
			sub = goClient.SSubscribe(t.Context(), "news")
		}
		defer sub.Close()
		if _, err := sub.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		heardBy["go-redis "+kind] = follow(t, "go-redis "+kind, sub)
	}
	interpreter := python(t)
	run := func(name string, cmd *exec.Cmd) {
		t.Helper()
		h := &heard{name: name}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var said logBuffer
		cmd.Stderr = &said
		in, err := cmd.StdinPipe()
		if err = cmp.Or(err, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		read := make(chan struct{})
		go func() {
			defer close(read)
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				h.add(lines.Text())
			}
		}()
		t.Cleanup(func() {
			_ = in.Close()
			timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
			<-read
			if err := cmd.Wait(); err != nil || !timer.Stop() {
				t.Errorf("%s: %v\n%s", name, err, lastLines(said.String(), 20))
			}
		})
		heardBy[name] = h
	}
	run("redis-py", exec.Command(interpreter, append([]string{"testdata/cluster_pubsub_redis_py.py"}, addrs...)...))
	node, modules := installInNode(t, "ioredis", ioredisVersions[len(ioredisVersions)-1])
	cmd := exec.Command(node, append([]string{"testdata/cluster_pubsub_ioredis.js"}, addrs...)...)
	cmd.Env = append(cmd.Environ(), "NODE_PATH="+modules)
	run("ioredis", cmd)
	for _, n := range c.all {
		_, port, _ := strings.Cut(n.client, ":")
		cli := exec.Command(need(t, "redis-cli"), "-c", "-p", port, "--csv", "SUBSCRIBE", "news")
		h := &heard{name: "redis-cli at " + n.name}
		out, err := cli.StdoutPipe()
		if err = cmp.Or(err, cli.Start()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cli.Process.Kill(); _ = cli.Wait() })
		go func() {
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				if kind, text, ok := strings.Cut(lines.Text(), `,"news",`); ok && kind == `"message"` {
					h.add(strings.Trim(text, `"`))
				} else {
					h.add(lines.Text())
				}
			}
		}()
		heardBy[h.name] = h
	}
	number := 0
	all := func(when string) {
		t.Helper()
		for _, n := range c.all {
			client := n.connect()
			for _, h := range heardBy {
				c.await(fmt.Sprintf("a message of %s %s at %s, which has heard %.300q", n.name, when, h.name, h.all()), func() bool {
					number++
					text := fmt.Sprint(when, " ", number)
					if err := cmp.Or(client.Publish(t.Context(), "news", text).Err(), client.SPublish(t.Context(), "news", text).Err()); err != nil {
						t.Errorf("PUBLISH at %s: %v", n.name, err)
					}
					for range 20 {
						if h.has(text) {
							return true
						}
						time.Sleep(5 * time.Millisecond)
					}
					return false
				})
			}
			client.Close()
		}
	}
	all("at first")
	do(c, "CLUSTER", "TRANSFER")
	all("after a transfer")
	killed := c.leader()
	killed.kill()
	c.leader()
	killed.start()
	killed.awaitServing()
	delete(heardBy, "redis-cli at "+killed.name) // it ends with its connection
	all("after a kill")
}
