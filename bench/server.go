package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// buildMayfly builds the server of the repository in the current folder.
func buildMayfly(ctx context.Context) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "mayfly-bench-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	path = filepath.Join(dir, "mayfly")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", path, "mayfly").CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("cannot build the server: %w\n%s", err, out)
	}
	return path, remove, nil
}

// redisServer is the program of the other side.
const redisServer = "redis-server"

// noRedis replaces the figures of Redis.
const noRedis = redisServer + " is not installed"

// startTime bounds the time until a server has loaded its data and answers.
const startTime = 2 * time.Minute

// server is a server process with a data folder of its own.
type server struct {
	kind
	program string
	args    []string
	cmd     *exec.Cmd
	addr    string
	dir     string
	log     bytes.Buffer
}

// start starts a server of this kind on a new folder, with more options, and waits until it answers.
func (k kind) start(ctx context.Context, o options, extra ...string) (*server, error) {
	dir, err := os.MkdirTemp("", "mayfly-bench-data-")
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(o.port + k.port)
	s := &server{
		kind: k, program: redisServer, addr: "127.0.0.1:" + port, dir: dir,
		args: append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--loglevel", "warning"}, append(k.options, extra...)...),
	}
	if k.name == mayflyKind.name {
		s.program = o.mayfly
	}
	if err := s.run(ctx); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

// run starts the process and waits until it has loaded its data.
func (s *server) run(ctx context.Context) error {
	s.log.Reset()
	s.cmd = exec.CommandContext(ctx, s.program, s.args...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = 30 * time.Second
	if err := s.cmd.Start(); err != nil {
		return err
	}
	client := s.client(1)
	defer client.Close()
	var err error
	for deadline := time.Now().Add(startTime); ; time.Sleep(5 * time.Millisecond) {
		if err = client.Ping(ctx).Err(); err == nil {
			break
		}
		// The file in /proc of a process that has ended is that of a zombie.
		if _, gone := s.rss(); gone != nil || time.Now().After(deadline) || ctx.Err() != nil {
			s.kill()
			return fmt.Errorf("%s does not answer at %s: %w\n%s", s.program, s.addr, err, s.log.Bytes())
		}
	}
	// Another server may listen here already.
	info, err := client.Info(ctx, "server").Result()
	if pid := field(info, "process_id"); err == nil && pid != strconv.Itoa(s.cmd.Process.Pid) {
		err = fmt.Errorf("process %s listens on %s already", pid, s.addr)
	}
	if err != nil {
		s.kill()
	}
	return err
}

// restart stops the server with SIGTERM and starts it on the same data. It returns the time from the start
// of the process to the first answer.
func (s *server) restart(ctx context.Context) (time.Duration, error) {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	if err := s.cmd.Wait(); err != nil {
		return 0, fmt.Errorf("%s did not stop well: %w\n%s", s.program, err, s.log.Bytes())
	}
	began := time.Now()
	err := s.run(ctx)
	return time.Since(began), err
}

// remove kills the server and removes its folder.
func (s *server) remove() {
	s.kill()
	_ = os.RemoveAll(s.dir)
}

func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// client returns a client with a number of connections that sends no command twice.
func (s *server) client(connections int) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: s.addr, PoolSize: connections, MinIdleConns: connections, MaxRetries: -1,
		Protocol: 2, DisableIdentity: true, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
	})
}

// do sends a command and returns its reply.
func (s *server) do(ctx context.Context, args ...any) (any, error) {
	client := s.client(1)
	defer client.Close()
	return client.Do(ctx, args...).Result()
}

// tick is the unit of CPU time in /proc.
const tick = 10 * time.Millisecond

// cpu returns the CPU time of the server.
func (s *server) cpu() (time.Duration, error) { return cpuOf(strconv.Itoa(s.cmd.Process.Pid)) }

func cpuOf(pid string) (time.Duration, error) {
	// The state is the third field, utime and stime are the 14th and 15th.
	fields, err := statOf(pid)
	if err != nil {
		return 0, err
	}
	user, err1 := strconv.ParseInt(fields[14-3], 10, 64)
	system, err2 := strconv.ParseInt(fields[15-3], 10, 64)
	return time.Duration(user+system) * tick, errors.Join(err1, err2)
}

// written returns the bytes that the server has given to disks since its start.
func (s *server) written() (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			return strconv.ParseFloat(strings.TrimSpace(n), 64)
		}
	}
	return 0, errors.New("the system does not count written bytes")
}

// rss returns the resident memory of the server in bytes. It fails if the process has ended.
func (s *server) rss() (float64, error) {
	fields, err := statOf(strconv.Itoa(s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	pages, err := strconv.ParseInt(fields[24-3], 10, 64)
	if err == nil && pages <= 0 {
		err = errors.New("the process has ended")
	}
	return float64(pages) * float64(os.Getpagesize()), err
}

// statOf returns the fields of /proc/<pid>/stat from the third on. The second is the name in parentheses,
// which may hold spaces.
func statOf(pid string) ([]string, error) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 22 {
		return nil, fmt.Errorf("cannot read %s", stat)
	}
	return fields, nil
}

// quietTime bounds the wait for the background work of servers.
const quietTime = 20 * time.Second

// quiet waits until the servers are idle, so that checkpoints, rewrites of the AOF and garbage collections
// of earlier commands are over.
func quiet(ctx context.Context, servers ...*server) error {
	const look = 100 * time.Millisecond
	for deadline := time.Now().Add(quietTime); time.Now().Before(deadline); {
		before, err := busy(servers)
		if err != nil {
			return err
		}
		sleep(ctx, look)
		after, err := busy(servers)
		if err != nil || after-before <= 2*tick {
			return err
		}
	}
	return ctx.Err()
}

// busy returns the CPU time of servers and their children. Redis rewrites its AOF in a child, whose time
// counts as its own only after the child has ended.
func busy(servers []*server) (sum time.Duration, err error) {
	for _, s := range servers {
		cpu, err := s.cpu()
		if err != nil {
			return 0, err
		}
		sum += cpu
		pid := strconv.Itoa(s.cmd.Process.Pid)
		children, _ := os.ReadFile("/proc/" + pid + "/task/" + pid + "/children")
		for child := range strings.FieldsSeq(string(children)) {
			used, _ := cpuOf(child) // it may have ended
			sum += used
		}
	}
	return sum, nil
}

// field returns a field of an INFO reply, "" if it is missing.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// number returns a field of an INFO reply as an integer, 0 if it is none.
func number(info, name string) int {
	n, _ := strconv.Atoi(field(info, name))
	return n
}

func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
