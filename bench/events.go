package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// The delay of events: the time from a death until a client knows of it. Plain keys die evenly, and a client
// takes the time: a subscriber of expired, or a reader of the log of deaths who waits in XREADGROUP. The ends
// of keys are exact to the millisecond and are part of their ids. They die alone first, and then beside many
// others whose end is a day away.

// deathsPerSecond is 100,000 a minute.
const deathsPerSecond = 100_000 / 60.0

// hearer is a way to learn of deaths.
type hearer struct {
	name    string
	options []string // of the command line
	hear    func(ctx context.Context, s *server) (next func() (ids []string, err error), end func(), err error)
}

var hearers = []hearer{
	{"`SUBSCRIBE` to `expired`", []string{"--notify-keyspace-events", "Ex"}, hearEvents},
	{"`XREADGROUP … BLOCK` of the log", nil, hearLog},
}

func benchEvents(ctx context.Context, o options) error {
	over := o.over
	if over == 0 {
		over = o.span(time.Minute)
	}
	var rows [][]string
	for i, by := range hearers {
		for j, others := range []int{0, o.ids()} {
			statusOf(ctx).nextOf(2*i+j, 2*len(hearers), "%s, %d other items", by.name, others)
			row, err := delays(ctx, o, by, others, over)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
	}
	page := fmt.Sprintf("## Events of deaths\n\n%.0f keys a second die for %v, at the default effort. "+
		"From the moment of the death until a client knows of it.\n\n", deathsPerSecond, over)
	page += table([]string{"client", "other items that have an end", "deaths", "p50", "p90", "p99", "max", "CPU of the server"}, rows)
	return o.publish(ctx, "events", page)
}

// hearEvents subscribes to the events of database 0.
func hearEvents(ctx context.Context, s *server) (next func() ([]string, error), end func(), err error) {
	client := s.client(1)
	subscription := client.Subscribe(ctx, "__keyevent@0__:expired")
	end = func() {
		_ = subscription.Close()
		_ = client.Close()
	}
	if _, err := subscription.Receive(ctx); err != nil {
		end()
		return nil, nil, err
	}
	return func() ([]string, error) {
		message, err := subscription.ReceiveMessage(ctx)
		if err != nil {
			return nil, err
		}
		return []string{message.Payload}, nil
	}, end, nil
}

// hearLog keeps a log of the deaths in database 0 and reads it as a consumer of a group, who acknowledges
// what it has read on another connection.
func hearLog(ctx context.Context, s *server) (next func() ([]string, error), end func(), err error) {
	const stream, group = "__keyevent@0__:expired", "bench"
	if _, err := s.do(ctx, "CONTAINER.SET", "0", "TTL", -1, "LOG", 3600); err != nil {
		return nil, nil, err
	}
	client := s.client(2)
	if err := client.XGroupCreate(ctx, stream, group, "$").Err(); err != nil {
		_ = client.Close()
		return nil, nil, err
	}
	acks := make(chan []string, 1<<16)
	failed := make(chan error, 1)
	go func() {
		for list := range acks {
			if err := client.XAck(ctx, stream, group, list...).Err(); err != nil {
				failed <- err
				return
			}
		}
	}()
	return func() (ids []string, err error) {
		select {
		case err := <-failed:
			return nil, err
		default:
		}
		read, err := client.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: group, Consumer: "reader", Streams: []string{stream, ">"}, Count: 1000, Block: 10 * time.Second,
		}).Result()
		if errors.Is(err, redis.Nil) {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		var list []string
		for _, entry := range read[0].Messages {
			id, _ := entry.Values["id"].(string)
			ids = append(ids, id)
			list = append(list, entry.ID)
		}
		acks <- list
		return ids, nil
	}, func() { close(acks); _ = client.Close() }, nil
}

// delays lets keys die beside others and returns the row of the table.
func delays(ctx context.Context, o options, by hearer, others int, over time.Duration) ([]string, error) {
	s, err := mayflyKind.start(ctx, o, by.options...)
	if err != nil {
		return nil, err
	}
	defer s.remove()
	rng := rand.New(rand.NewPCG(1, 1))
	set := func(key string, rest ...string) func(b []byte) []byte {
		return func(b []byte) []byte { return appendCommand(b, append([]string{"SET", key, "x"}, rest...)...) }
	}
	err = pipelined(ctx, s.addr, others, 0, func(b []byte, i int) []byte {
		return set("other:"+strconv.Itoa(i), "EX", strconv.Itoa(86400+rng.IntN(86400)))(b)
	}, nil)
	if err != nil {
		return nil, err
	}
	const ahead = 5 * time.Second // to write the keys
	ctx, cancel := context.WithTimeout(ctx, 2*ahead+over+maxPurgeDelay)
	defer cancel()
	next, end, err := by.hear(ctx, s)
	if err != nil {
		return nil, err
	}
	defer end()
	deaths := int(over.Seconds() * deathsPerSecond)
	first := time.Now().Add(ahead)
	err = pipelined(ctx, s.addr, deaths, 0, func(b []byte, i int) []byte {
		end := strconv.FormatInt(first.Add(time.Duration(rng.Int64N(int64(over)))).UnixMilli(), 10)
		return set(end+":"+strconv.Itoa(i), "PXAT", end)(b)
	}, nil)
	if err != nil {
		return nil, err
	}
	if time.Until(first) < 0 {
		return nil, errTooSlow
	}
	before, err := s.cpu()
	if err != nil {
		return nil, err
	}
	delay := newHistogram()
	for int(delay.TotalCount()) < deaths {
		ids, err := next()
		if err != nil {
			return nil, fmt.Errorf("%s: after %d of %d deaths: %w", by.name, delay.TotalCount(), deaths, err)
		}
		now := time.Now()
		for _, id := range ids {
			at, _, _ := strings.Cut(id, ":")
			ms, err := strconv.ParseInt(at, 10, 64)
			if err != nil {
				return nil, err
			}
			if err := delay.RecordValue(int64(max(now.Sub(time.UnixMilli(ms)), 0))); err != nil {
				return nil, err
			}
		}
	}
	after, err := s.cpu()
	row := []string{by.name, strconv.Itoa(others), strconv.Itoa(deaths)}
	for _, percentile := range []float64{50, 90, 99, 100} {
		row = append(row, time.Duration(delay.ValueAtPercentile(percentile)).Round(100*time.Microsecond).String())
	}
	return append(row, fmt.Sprintf("%.1f s", (after-before).Seconds())), err
}
