package main

import "context"

// The commands of RedisJSON beside mayfly's own that do the same, on the documents of database 0.
var (
	jsonGet = []string{"JSON.GET", anyID}
	jsonAll = []string{"JSON.GET", anyID, "$"}
	jsonSet = []string{"JSON.SET", anyID, "$", anyBody}
	jsonAdd = []string{"JSON.NUMINCRBY", anyID, "$.id", "1"}

	ownGet = []string{"DOC.GET", "0", anyID}
	ownPut = []string{"DOC.PUT", "0", anyID, anyBody}
	ownAdd = []string{"DOC.PATCH", "0", anyID, "INCR", "/id", "1"}
)

// turns is how often beside changes between its commands in a round. Brief turns share out the work that the
// server does in the background, as checkpoints.
const turns = 10

// beside returns a job that runs two commands of mayfly by turns, as A B B A. The sample has the throughput
// of the first and the CPU time of the server for it in seconds, then both as ratios to the second: medians
// of the pairs.
func beside(requests int, command, other []string) job {
	return func(ctx context.Context, c *comparison, s *server) (sample, error) {
		if c.round == 0 {
			if err := s.fillDatabase(ctx, c.ids()); err != nil {
				return nil, err
			}
		}
		columns := make([][]float64, 4)
		for turn := range turns {
			var rate, cpu [2]float64
			for k := range 2 {
				i := (turn + k) % 2
				var err error
				rate[i], cpu[i], err = throughput(ctx, s, 16, c.scale(requests)/turns, c.ids(), [][]string{command, other}[i])
				if err != nil {
					return nil, err
				}
			}
			for i, v := range []float64{rate[0], cpu[0], rate[0] / rate[1], cpu[0] / cpu[1]} {
				columns[i] = append(columns[i], v)
			}
		}
		medians := make(sample, len(columns))
		for i, column := range columns {
			medians[i] = spreadOf(column).Median
		}
		return medians, nil
	}
}

// fillDatabase puts all ids as documents into database 0, as a client of RedisJSON does.
func (s *server) fillDatabase(ctx context.Context, ids int) error {
	return pipelined(ctx, s.addr, ids, 0, func(b []byte, i int) []byte {
		return appendCommand(b, "JSON.SET", id(set, i), "$", body(i, -1))
	}, nil)
}

// jsonName begins the names of these rows. Redis has the commands by a module only.
const jsonName = "JSON."

// jsonWorkload is a row of a command of RedisJSON beside one of mayfly's. target is that of the throughput.
func jsonWorkload(name string, requests int, command, other []string, target float64) workload {
	return workload{name: name, data: documents, ours: beside(requests, command, other), metrics: []metric{
		{name: "throughput", unit: perSecond, better: more},
		{name: "server CPU a command", unit: seconds, better: less},
		{name: "throughput / that of " + other[0], unit: times, better: more, bound: target},
		{name: "server CPU / that of " + other[0], unit: times, better: less},
	}}
}

var jsonWorkloads = []workload{
	jsonWorkload(jsonName+"GET, depth 16", 500_000, jsonGet, ownGet, 0.95),
	jsonWorkload(jsonName+"GET $, depth 16", 500_000, jsonAll, ownGet, 0.95),
	jsonWorkload(jsonName+"SET, depth 16", 300_000, jsonSet, ownPut, 0.95),
	jsonWorkload(jsonName+"NUMINCRBY, depth 16", 300_000, jsonAdd, ownAdd, 0.9),
}
