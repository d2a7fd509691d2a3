package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// The delay of events: the time from a death to its event. Plain keys die evenly, and a subscriber takes
// the time. Their ends are exact to the millisecond and are part of their ids. They die alone first, and
// then beside many others whose end is a day away.

// deathsPerSecond is 100,000 a minute.
const deathsPerSecond = 100_000 / 60.0

func benchEvents(ctx context.Context, o options) error {
	over := o.over
	if over == 0 {
		over = o.span(time.Minute)
	}
	var rows [][]string
	for _, others := range []int{0, o.ids()} {
		row, err := delays(ctx, o, others, over)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	page := fmt.Sprintf("## Events of deaths\n\n%.0f keys a second die for %v, at the default effort. "+
		"From the moment of the death until a subscriber has its event `expired`.\n\n", deathsPerSecond, over)
	page += table([]string{"other items that have an end", "events", "p50", "p90", "p99", "max", "CPU of the server"}, rows)
	return o.publish("events", page)
}

// delays lets keys die beside others and returns the row of the table.
func delays(ctx context.Context, o options, others int, over time.Duration) ([]string, error) {
	s, err := mayflyKind.start(ctx, o, "--notify-keyspace-events", "Ex")
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

	const channel = "__keyevent@0__:expired"
	client := s.client(1)
	defer client.Close()
	subscription := client.Subscribe(ctx, channel)
	defer subscription.Close()
	if _, err := subscription.Receive(ctx); err != nil {
		return nil, err
	}
	deaths := int(over.Seconds() * deathsPerSecond)
	first := time.Now().Add(5 * time.Second)
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
	ctx, cancel := context.WithDeadline(ctx, first.Add(over+maxPurgeDelay))
	defer cancel()
	delay := newHistogram()
	for range deaths {
		message, err := subscription.ReceiveMessage(ctx)
		if err != nil {
			return nil, fmt.Errorf("after %d of %d events: %w", delay.TotalCount(), deaths, err)
		}
		end, _, _ := strings.Cut(message.Payload, ":")
		ms, err := strconv.ParseInt(end, 10, 64)
		if err != nil {
			return nil, err
		}
		if err := delay.RecordValue(int64(max(time.Since(time.UnixMilli(ms)), 0))); err != nil {
			return nil, err
		}
	}
	after, err := s.cpu()
	row := []string{strconv.Itoa(others), strconv.Itoa(deaths)}
	for _, percentile := range []float64{50, 90, 99, 100} {
		row = append(row, time.Duration(delay.ValueAtPercentile(percentile)).Round(100*time.Microsecond).String())
	}
	return append(row, fmt.Sprintf("%.1f s", (after-before).Seconds())), err
}
