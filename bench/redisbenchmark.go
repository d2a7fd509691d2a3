package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// redisBenchmark is Redis' own load generator.
const redisBenchmark = "redis-benchmark"

// errStuck says that redis-benchmark did not finish.
var errStuck = errors.New(redisBenchmark + " did not finish")

// attempts is the most runs of redis-benchmark for a result. The one of Redis 7.0 sometimes waits for ever,
// at full speed, for replies that it has received, with any server.
const attempts = 4

// throughput runs redis-benchmark until it succeeds. It returns the requests a second and the CPU time of
// the server for a request, in seconds.
func throughput(ctx context.Context, s *server, depth, requests, ids int, command []string) (perSecond, cpu float64, err error) {
	for range attempts {
		var before, after time.Duration
		if before, err = s.cpu(); err != nil {
			return 0, 0, err
		}
		perSecond, err = runRedisBenchmark(ctx, s, depth, requests, ids, command)
		if errors.Is(err, errStuck) {
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		after, err = s.cpu()
		return perSecond, (after - before).Seconds() / float64(requests), err
	}
	return 0, 0, fmt.Errorf("%w, %d times", err, attempts)
}

// runRedisBenchmark runs it once. It is stuck if it runs on while the server is idle.
func runRedisBenchmark(ctx context.Context, s *server, depth, requests, ids int, command []string) (perSecond float64, err error) {
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	_, port, _ := strings.Cut(s.addr, ":")
	args := []string{"-p", port, "-c", strconv.Itoa(connections), "-P", strconv.Itoa(depth),
		"-n", strconv.Itoa(requests), "-r", strconv.Itoa(ids), "--csv"}
	cmd := exec.CommandContext(running, redisBenchmark, append(args, command...)...)
	cmd.WaitDelay = time.Second
	var out, failure bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failure

	go func() {
		const patience = 3 // half seconds
		idle, last := 0, time.Duration(-1)
		for idle < patience && running.Err() == nil {
			sleep(running, 500*time.Millisecond)
			used, err := s.cpu()
			if err == nil && used-last <= tick {
				idle++
			} else {
				idle = 0
			}
			last = used
		}
		stop(errStuck)
	}()
	err = cmd.Run()
	if errors.Is(context.Cause(running), errStuck) {
		return 0, errStuck
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w\n%s%s", redisBenchmark, err, out.Bytes(), failure.Bytes())
	}
	return parseRedisBenchmark(out.String())
}

// parseRedisBenchmark reads the requests a second from the output of redis-benchmark --csv: a line of
// names and one of values, each in quotes. The first value is the command, which may hold quotes and
// commas.
func parseRedisBenchmark(out string) (perSecond float64, err error) {
	header, values, _ := strings.Cut(strings.TrimSpace(out), "\n")
	const separator = `","`
	names := strings.Split(strings.Trim(header, `"`), separator)
	fields := strings.Split(strings.TrimSuffix(values, `"`), separator)
	if len(names) < 2 || names[0] != "test" || names[1] != "rps" || len(fields) < len(names) {
		return 0, fmt.Errorf("%s printed %q", redisBenchmark, out)
	}
	perSecond, err = strconv.ParseFloat(fields[len(fields)-len(names)+1], 64)
	if err == nil && !(perSecond > 0) {
		err = fmt.Errorf("%s printed %q", redisBenchmark, out)
	}
	return perSecond, err
}
