package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// buildMayfly builds the server of the module in the current folder.
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

// server is a server process with its data in a folder of its own.
type server struct {
	cmd  *exec.Cmd
	addr string
	dir  string
	log  bytes.Buffer
}

// startServer starts a program, whose arguments args gives for a port and a folder, and waits until
// it answers.
func startServer(ctx context.Context, program string, port int, args func(port int, dir string) []string) (*server, error) {
	dir, err := os.MkdirTemp("", "mayfly-bench-data-")
	if err != nil {
		return nil, err
	}
	s := &server{addr: "127.0.0.1:" + strconv.Itoa(port), dir: dir}
	s.cmd = exec.CommandContext(ctx, program, args(port, dir)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.WaitDelay = 30 * time.Second
	if err := s.cmd.Start(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	client := s.client(1)
	defer client.Close()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if err = client.Ping(ctx).Err(); err == nil {
			break
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			s.stop()
			return nil, fmt.Errorf("%s does not answer at %s: %w\n%s", program, s.addr, err, s.log.Bytes())
		}
	}
	// Another server may have been there before: the one that answers must be ours.
	info, err := client.Info(ctx, "server").Result()
	if pid := field(info, "process_id"); err == nil && pid != strconv.Itoa(s.cmd.Process.Pid) {
		err = fmt.Errorf("process %s listens on %s already", pid, s.addr)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// startMayfly starts mayfly with further options.
func startMayfly(ctx context.Context, o options, extra ...string) (*server, error) {
	return startServer(ctx, o.mayfly, o.port, func(port int, dir string) []string {
		return append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir, "--loglevel", "warning"}, extra...)
	})
}

// stop ends the server and removes its folder.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
	_ = os.RemoveAll(s.dir)
}

// client gives a client of so many connections, which takes no command twice.
func (s *server) client(connections int) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: s.addr, PoolSize: connections, MinIdleConns: connections, MaxRetries: -1,
		Protocol: 2, DisableIdentity: true, ReadTimeout: time.Minute, WriteTimeout: time.Minute,
	})
}

// cpu is the processor time that the server has used.
func (s *server) cpu() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// The second field is the name in parentheses, which may hold spaces; utime and stime are the
	// 14th and 15th, in ticks of 10 ms.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const utime, stime = 14 - 3, 15 - 3
	if len(fields) <= stime {
		return 0, fmt.Errorf("cannot read %s", stat)
	}
	user, err1 := strconv.ParseInt(fields[utime], 10, 64)
	system, err2 := strconv.ParseInt(fields[stime], 10, 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("cannot read %s", stat)
	}
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}

// field gives a field of an INFO reply, empty if it is missing.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// table prints rows under a header in Markdown, in columns.
func table(header []string, rows [][]string) {
	width := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	line := func(row []string) {
		for i, cell := range row {
			fmt.Printf("| %-*s ", width[i], cell)
		}
		fmt.Println("|")
	}
	line(header)
	for i := range header {
		fmt.Print("|", strings.Repeat("-", width[i]+2))
	}
	fmt.Println("|")
	for _, row := range rows {
		line(row)
	}
	fmt.Println()
}

// percentile gives the p-th percentile of values, which it sorts.
func percentile(values []time.Duration, p float64) time.Duration {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[min(int(p/100*float64(len(values))), len(values)-1)]
}

// whereAndWhat says on which machine and which commit this runs: figures are worth nothing without.
func whereAndWhat(ctx context.Context) string {
	commit := "unknown"
	if out, err := exec.CommandContext(ctx, "git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		commit = strings.TrimSpace(string(out))
		if out, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--untracked-files=no").Output(); err == nil && len(out) > 0 {
			commit += " with changes"
		}
	}
	cpu := "unknown CPU"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, ok := strings.CutPrefix(line, "model name"); ok {
				cpu = strings.Trim(name, " \t:\n")
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d CPUs, %s/%s, %s; commit %s; %s\n\n", cpu, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH,
		runtime.Version(), commit, time.Now().UTC().Format("2006-01-02 15:04 UTC"))
}
