package main

import (
	"context"
	"fmt"
	"strconv"
)

// collectionKinds are what collectionsJob loads, element by element, with values of 20 bytes.
var collectionKinds = []struct {
	name   string
	target float64 // memory an element, a share of Redis'
	add    func(b []byte, i int) []byte
}{
	{"hashes of 10 fields", 1.25, func(b []byte, i int) []byte {
		return appendCommand(b, "HSET", "hash:"+strconv.Itoa(i/10), "field:"+strconv.Itoa(i%10), twenty)
	}},
	{"one hash", 0.75, func(b []byte, i int) []byte { return appendCommand(b, "HSET", "hash", id(set, i), twenty) }},
	{"one set", 0.5, func(b []byte, i int) []byte { return appendCommand(b, "SADD", "set", id(set, i)) }},
	{"one sorted set", 0.6, func(b []byte, i int) []byte {
		return appendCommand(b, "ZADD", "board", strconv.Itoa(i), id(set, i))
	}},
	{"one list", 1.5, func(b []byte, i int) []byte { return appendCommand(b, "RPUSH", "queue", twenty) }},
}

// collectionMetrics are those of the samples of collectionsJob.
func collectionMetrics() (list []metric) {
	for _, k := range collectionKinds {
		list = append(list, metric{name: "memory an element, " + k.name, unit: bytesEach, better: less, target: k.target})
	}
	return append(list, metric{name: "start with all of them", unit: seconds, better: less})
}

// collectionsJob loads collections into a server of its own, one kind after the other, a third as many
// elements of each as there are documents elsewhere. The sample has the memory of an element of each kind, as
// the server counts it: the resident memory of so few is mostly that of the process. Last comes the time of a
// start.
func collectionsJob(k kind) job {
	return func(ctx context.Context, c *comparison, _ *server) (sample, error) {
		s, err := k.start(ctx, c.options)
		if err != nil {
			return nil, err
		}
		defer s.remove()
		n := c.ids() / 3
		var values sample
		for _, of := range collectionKinds {
			before, err := s.used(ctx)
			if err != nil {
				return nil, err
			}
			if err := pipelined(ctx, s.addr, n, 0, of.add, nil); err != nil {
				return nil, err
			}
			after, err := s.used(ctx)
			if err != nil {
				return nil, err
			}
			values = append(values, (after-before)/float64(n))
		}
		if k.name == redisKind.name {
			if err := s.rewriteAOF(ctx); err != nil {
				return nil, err
			}
		}
		took, err := s.restart(ctx)
		return append(values, took.Seconds()), err
	}
}

// used returns the bytes that the server counts as used memory, once it is idle.
func (s *server) used(ctx context.Context) (float64, error) {
	if err := quiet(ctx, s); err != nil {
		return 0, err
	}
	info, err := s.do(ctx, "INFO", "memory")
	return float64(number(fmt.Sprint(info), "used_memory")), err
}
