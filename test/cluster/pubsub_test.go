package cluster

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"maps"
	"mayfly/test/drill"
	"mayfly/test/harness"
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

func (h *heard) has(text string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.list, text)
}

// listen subscribes at a node, over a connection of its own, and returns what it hears: the payloads.
func listen(n *harness.Node, name string, subscribe func(context.Context, *redis.PubSub) error) *heard {
	n.T.Helper()
	client := redis.NewClient(&redis.Options{Addr: n.ClientAddr, MaxRetries: -1, ReadTimeout: harness.Patience})
	sub := client.Subscribe(n.T.Context())
	n.T.Cleanup(func() { sub.Close(); client.Close() })
	drill.Check(n.T, subscribe(n.T.Context(), sub))
	if _, err := sub.Receive(n.T.Context()); err != nil {
		n.T.Fatalf("%s: %v", name, err)
	}
	return follow(n.T, name, sub)
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

// TestClusterPubSub publishes at each node and subscribes at each, with clients of four kinds, while nodes
// are killed and the lead is passed on. A message reaches each subscriber of a node that is up, once and in
// order.
func TestClusterPubSub(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, "--notify-keyspace-events", "KEA")
	ctx := t.Context()
	plain := func(channels ...string) func(context.Context, *redis.PubSub) error {
		return func(ctx context.Context, s *redis.PubSub) error { return s.Subscribe(ctx, channels...) }
	}
	subscribers, events := map[*harness.Node][]*heard{}, map[*harness.Node]*heard{}
	clients := map[*harness.Node]*redis.Client{}
	for _, n := range c.Nodes {
		clients[n] = n.Connect()
		defer clients[n].Close()
		subscribers[n] = []*heard{
			listen(n, "SUBSCRIBE at "+n.Name, plain("news")),
			listen(n, "PSUBSCRIBE at "+n.Name, func(ctx context.Context, s *redis.PubSub) error { return s.PSubscribe(ctx, "new*") }),
			listen(n, "SSUBSCRIBE at "+n.Name, func(ctx context.Context, s *redis.PubSub) error { return s.SSubscribe(ctx, "news") }),
		}
		events[n] = listen(n, "events at "+n.Name, plain("__keyevent@0__:expired"))
	}
	number := 0
	everyone := func(when string, up ...*harness.Node) {
		t.Helper()
		for _, from := range up {
			number++
			text := fmt.Sprintf("%06d from %s %s", number, from.Name, when)
			if n, err := clients[from].Publish(ctx, "news", text).Result(); err != nil || n < 2 {
				t.Errorf("PUBLISH at %s %s: %d receivers (%v)", from.Name, when, n, err)
			}
			// A channel and a shard channel of the same name are two.
			if n, err := clients[from].SPublish(ctx, "news", text).Result(); err != nil || n < 1 {
				t.Errorf("SPUBLISH at %s %s: %d receivers (%v)", from.Name, when, n, err)
			}
			for _, to := range up {
				for _, h := range subscribers[to] {
					c.Await(fmt.Sprintf("%q: %s", text, h.name), func() bool { return h.has(text) })
				}
			}
		}
	}
	die := func(when string, up ...*harness.Node) {
		t.Helper()
		number++
		key := fmt.Sprintf("dies %d %s", number, when)
		do(c, "SET", key, 1, "PX", 20)
		for _, n := range up {
			c.Await(fmt.Sprintf("%s: the death of %q", events[n].name, key), func() bool { return events[n].has(key) })
		}
	}
	probe := func() { // messages are lost until the nodes have connected
		t.Helper()
		for _, from := range c.Nodes {
			for _, to := range c.Nodes {
				var sent []string
				c.Await(fmt.Sprintf("%s to hear %s", to.Name, from.Name), func() bool {
					number++
					text := fmt.Sprint("probe ", number)
					clients[from].Publish(ctx, "news", text)
					sent = append(sent, text)
					return slices.ContainsFunc(sent, subscribers[to][0].has)
				})
			}
		}
	}
	probe()
	everyone("at first", c.Nodes...)
	die("at first", c.Nodes...)

	do(c, "CLUSTER", "TRANSFER")
	everyone("after a transfer", c.Nodes...)
	die("after a transfer", c.Nodes...)

	killed := c.Leader()
	killed.Kill()
	others := slices.DeleteFunc(slices.Clone(c.Nodes), func(n *harness.Node) bool { return n == killed })
	everyone("while no node leads", others...)
	c.Leader()
	die("after a kill", others...)
	killed.Start()
	killed.AwaitServing()
	subscribers[killed] = []*heard{listen(killed, "SUBSCRIBE at "+killed.Name+" again", plain("news"))}
	probe()
	everyone("after the node is back", others...)

	// Many messages of each node: in order, none twice.
	var publishers sync.WaitGroup
	many := drill.Pick(400, 400, 2000)
	for _, n := range c.Nodes {
		publishers.Go(func() {
			for i := 0; i < many; i += 100 {
				_, err := clients[n].Pipelined(ctx, func(p redis.Pipeliner) error {
					for j := range 100 {
						p.Publish(ctx, "news", fmt.Sprintf("many %s %06d", n.Name, i+j))
					}
					return nil
				})
				if err != nil {
					t.Errorf("PUBLISH at %s: %v", n.Name, err)
				}
			}
		})
	}
	publishers.Wait()
	for _, to := range c.Nodes {
		h := subscribers[to][0]
		for _, from := range c.Nodes {
			c.Await(h.name+": the last message of "+from.Name, func() bool { return h.has(fmt.Sprintf("many %s %06d", from.Name, many-1)) })
			var got []string
			for _, text := range h.all() {
				if strings.HasPrefix(text, "many "+from.Name) {
					got = append(got, text)
				}
			}
			if !slices.IsSorted(got) || len(got) != many || len(slices.Compact(got)) != many {
				t.Errorf("%s: %d messages of %s, want %d in order", h.name, len(got), from.Name, many)
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
					t.Errorf("%s, node %s: %q came %d times", h.name, n.Name, text, seen[text])
				}
			}
		}
	}
}

// TestClusterPubSubClients subscribes as programs do, with the clients for clusters, each at a node of its
// choice. They hear what is published at each node.
func TestClusterPubSubClients(t *testing.T) {
	t.Parallel()
	c := harness.StartCluster(t, 3, "--notify-keyspace-events", "KEA")
	var addrs []string
	for _, n := range c.Nodes {
		addrs = append(addrs, n.ClientAddr)
	}
	heardBy := map[string]*heard{}
	goClient := c.ClusterClient()
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
	interpreter := harness.Python(t)
	run := func(name string, cmd *exec.Cmd) {
		t.Helper()
		h := &heard{name: name}
		out, err := cmd.StdoutPipe()
		drill.Check(t, err)
		var said harness.LogBuffer
		cmd.Stderr = &said
		in, err := cmd.StdinPipe()
		drill.Check(t, cmp.Or(err, cmd.Start()))
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
			timer := time.AfterFunc(harness.Patience, func() { _ = cmd.Process.Kill() })
			<-read
			if err := cmd.Wait(); err != nil || !timer.Stop() {
				t.Errorf("%s: %v\n%s", name, err, harness.LastLines(said.String(), 20))
			}
		})
		heardBy[name] = h
	}
	run("redis-py", exec.Command(interpreter, append([]string{"test/cluster/testdata/cluster_pubsub_redis_py.py"}, addrs...)...))
	node, modules := harness.InstallInNode(t, "ioredis", harness.IoredisVersions[len(harness.IoredisVersions)-1])
	cmd := exec.Command(node, append([]string{"test/cluster/testdata/cluster_pubsub_ioredis.js"}, addrs...)...)
	cmd.Env = append(cmd.Environ(), "NODE_PATH="+modules)
	run("ioredis", cmd)
	for _, n := range c.Nodes {
		host, port, _ := strings.Cut(n.ClientAddr, ":")
		h := &heard{name: "redis-cli at " + n.Name}
		program, ended := harness.Need(t, "redis-cli"), make(chan struct{})
		t.Cleanup(func() { <-ended })
		go func() {
			defer close(ended)
			// redis-cli ends when its node disconnects it, as one does that loads the committed state again.
			for again := time.NewTicker(100 * time.Millisecond); t.Context().Err() == nil; <-again.C {
				cli := exec.CommandContext(t.Context(), program, "-c", "-h", host, "-p", port, "--csv", "SUBSCRIBE", "news")
				out, err := cli.StdoutPipe()
				if err = cmp.Or(err, cli.Start()); err != nil {
					continue // the test has ended
				}
				for lines := bufio.NewScanner(out); lines.Scan(); {
					if kind, text, ok := strings.Cut(lines.Text(), `,"news",`); ok && kind == `"message"` {
						h.add(strings.Trim(text, `"`))
					} else {
						h.add(lines.Text())
					}
				}
				_ = cli.Wait()
			}
		}()
		heardBy[h.name] = h
	}
	number := 0
	all := func(when string) {
		t.Helper()
		for _, n := range c.Nodes {
			client := n.Connect()
			for _, h := range heardBy {
				var sent []string
				c.Await(fmt.Sprintf("a message of %s %s at %s, which has heard %.300q", n.Name, when, h.name, h.all()), func() bool {
					number++
					text := fmt.Sprint(when, " ", number)
					if err := cmp.Or(client.Publish(t.Context(), "news", text).Err(), client.SPublish(t.Context(), "news", text).Err()); err != nil && !harness.Temporary(err) {
						t.Errorf("PUBLISH at %s: %v", n.Name, err)
					}
					sent = append(sent, text)
					return slices.ContainsFunc(sent, h.has)
				})
			}
			client.Close()
		}
	}
	all("at first")
	do(c, "CLUSTER", "TRANSFER")
	all("after a transfer")
	killed := c.Leader()
	killed.Kill()
	c.Leader()
	killed.Start()
	killed.AwaitServing()
	delete(heardBy, "redis-cli at "+killed.Name) // it ends with its connection
	all("after a kill")
}
