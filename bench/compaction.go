package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Requests while the server compacts or backs up. Half of the requests read documents and half write
// them. They come at half the pace that the server keeps up with, whether or not earlier requests are
// answered (openLoop). Their latency beside COMPACT and BACKUP is compared with that of a server without
// either. The writes cause checkpoints in all phases.

// background is the work of the server beside the requests of a phase.
type background struct {
	name  string
	start func(ctx context.Context, s *server, n int) error // starts it for the n-th time; nil: nothing
	done  string                                            // field of INFO that counts it; empty: start waits for its end
}

func benchCompaction(ctx context.Context, o options) error {
	s, err := mayflyKind.start(ctx, o)
	if err != nil {
		return err
	}
	defer s.remove()
	if err := s.load(ctx, o.ids()); err != nil {
		return err
	}
	mixed := func(*rand.Rand) request { return s.mixed(o.ids()) }
	peak, err := closedLoop(ctx, s.addr, connections, o.span(5*time.Second), mixed)
	if err != nil {
		return err
	}
	pace := peak / 2
	backups, err := os.MkdirTemp("", "mayfly-bench-backups-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(backups)
	phases := []background{
		{"nothing", nil, ""},
		{"COMPACT", func(ctx context.Context, s *server, _ int) error {
			_, err := s.do(ctx, "COMPACT")
			return err
		}, "compactions"},
		{"nothing, again", nil, ""},
		{"BACKUP", func(ctx context.Context, s *server, n int) error {
			path := filepath.Join(backups, strconv.Itoa(n))
			_, err := s.do(ctx, "BACKUP", path)
			return errors.Join(err, os.RemoveAll(path))
		}, ""},
	}
	var rows [][]string
	var idle openLoopResult
	for i, b := range phases {
		statusOf(ctx).nextOf(i, len(phases), "beside the requests: %s", b.name)
		if err := quiet(ctx, s); err != nil {
			return err
		}
		p, times, err := s.measureBeside(ctx, b, pace, o.span(25*time.Second), mixed)
		if err != nil {
			return err
		}
		if i == 0 {
			idle = p
		}
		row := []string{b.name, times}
		for _, percentile := range []float64{50, 99, 99.9, 100} {
			ns, of := p.latency.ValueAtPercentile(percentile), idle.latency.ValueAtPercentile(percentile)
			row = append(row, fmt.Sprintf("%v (%.1f)", time.Duration(ns).Round(10*time.Microsecond), float64(ns)/float64(of)))
		}
		late := time.Duration(p.lateness.ValueAtPercentile(99))
		rows = append(rows, append(row, late.Round(10*time.Microsecond).String()))
	}
	page := fmt.Sprintf("## Requests while the server compacts or backs up\n\n%d documents of %d bytes; %.0f requests a second, half of the most that it "+
		"keeps up with, half of them reads. Latency from the moment at which a request is due, in brackets how many times that of the first row.\n\n",
		o.ids(), bodySize, pace)
	page += table([]string{"beside the requests", "how often", "p50", "p99", "p99.9", "max", "generator late, p99"}, rows)
	return o.publish(ctx, "compaction", page)
}

// load writes the documents of the set "key".
func (s *server) load(ctx context.Context, n int) error {
	if _, err := s.do(ctx, s.newSet("key", -1)...); err != nil {
		return err
	}
	return pipelined(ctx, s.addr, n, 0, func(b []byte, i int) []byte { return s.put(b, "key", i, body(i, -1), 0) }, nil)
}

// mixed returns requests that read or write any of n documents.
func (s *server) mixed(n int) request {
	return func(b []byte, rng *rand.Rand) []byte {
		i := rng.IntN(n)
		if rng.IntN(2) == 0 {
			return s.get(b, "key", i)
		}
		return s.put(b, "key", i, body(i, -1), 0)
	}
}

// measureBeside measures requests for a while. It starts other work again whenever that has ended, and
// returns how often it did.
func (s *server) measureBeside(ctx context.Context, b background, pace float64, during time.Duration, newRequest func(*rand.Rand) request) (p openLoopResult, times string, err error) {
	before, err := s.figure(ctx, b.done)
	if err != nil {
		return p, "", err
	}
	stop := make(chan struct{})
	failed := make(chan error, 1)
	go func() {
		var err error
		p, err = openLoop(ctx, s.addr, connections, pace, stop, newRequest)
		failed <- err
	}()
	began, started := time.Now(), 0
	for time.Since(began) < during && ctx.Err() == nil && err == nil {
		busy := 0
		if b.start != nil && b.done != "" {
			busy, err = s.figure(ctx, "aof_rewrite_in_progress")
		}
		if b.start != nil && busy == 0 && err == nil {
			err = b.start(ctx, s, started)
			started++
		}
		sleep(ctx, 50*time.Millisecond)
	}
	close(stop)
	err = errors.Join(err, <-failed)
	times = "-"
	if b.start != nil {
		times = strconv.Itoa(started)
	}
	if b.done != "" && err == nil {
		after, failure := s.figure(ctx, b.done)
		times, err = fmt.Sprintf("%d files", after-before), failure
	}
	return p, times, err
}

// figure returns a number of INFO, 0 for an empty name.
func (s *server) figure(ctx context.Context, name string) (int, error) {
	if name == "" {
		return 0, nil
	}
	client := s.client(1)
	defer client.Close()
	info, err := client.Info(ctx, "persistence").Result()
	return number(info, name), err
}

// benchDisk writes documents that soon die, at a steady pace. It compares the size of the data folder
// with that of the documents that live. The reserve for a full disk, which is no data, is left out.
func benchDisk(ctx context.Context, o options) error {
	s, err := mayflyKind.start(ctx, o)
	if err != nil {
		return err
	}
	defer s.remove()
	const ttl = 15
	if _, err := s.do(ctx, s.newSet("key", ttl)...); err != nil {
		return err
	}
	living := o.ids() * 2 / 5
	pace := living / ttl
	during := o.span(2 * time.Minute)
	written := make(chan error, 1)
	go func() {
		total := pace * int(during/time.Second)
		written <- pipelined(ctx, s.addr, total, during, func(b []byte, i int) []byte { return s.put(b, "key", i, body(i, -1), ttl) }, nil)
	}()
	var worst, sum float64
	looks := 0
	began := time.Now()
	for {
		select {
		case err = <-written:
		case <-time.After(200 * time.Millisecond):
			if time.Since(began) < 2*ttl*time.Second { // deaths and writes are in balance
				continue
			}
			var bytes int64
			if bytes, err = folderSize(s.dir); err == nil {
				share := float64(bytes) / float64(living*(bodySize+len(id("key", 0))))
				worst, sum, looks = max(worst, share), sum+share, looks+1
				continue
			}
		}
		break
	}
	if err != nil {
		return err
	}
	compactions, err := s.figure(ctx, "compactions")
	if err != nil {
		return err
	}
	page := fmt.Sprintf("## Disk\n\n%d documents of %d bytes a second, each of which lives for %d seconds, so that %d live at a time. The file `reserve` is not counted.\n\n",
		pace, bodySize, ttl, living)
	page += table([]string{"measured for", "files of data, max", "files of data, mean", "files compacted"}, [][]string{{
		during.String(), fmt.Sprintf("%.2f × the living", worst), fmt.Sprintf("%.2f × the living", sum/float64(looks)), strconv.Itoa(compactions),
	}})
	return o.publish(ctx, "disk", page)
}

// folderSize returns the sum of the sizes of the files of a data folder in bytes, without its reserve.
func folderSize(dir string) (bytes int64, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Name() != "reserve" { // otherwise it was just removed
			bytes += info.Size()
		}
	}
	return bytes, err
}
