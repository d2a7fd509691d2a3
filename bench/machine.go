package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// machine describes the machine and the versions of a run, without which figures mean nothing.
type machine struct {
	CPU        string    `json:"cpu"`
	Cores      int       `json:"cores"`
	Memory     string    `json:"memory"`
	Kernel     string    `json:"kernel"`
	FileSystem string    `json:"file_system"` // of the data folders; appendfsync always means nothing in memory
	Load       string    `json:"load"`        // averages at the start: other work spoils figures
	Go         string    `json:"go"`
	Redis      string    `json:"redis"` // empty if it is not installed
	Commit     string    `json:"commit"`
	Date       time.Time `json:"date"`
}

// thisMachine describes the machine and what runs on it. The commit is that of the current folder.
func thisMachine(ctx context.Context, o options) machine {
	m := machine{
		CPU:        firstField("/proc/cpuinfo", "model name", "unknown CPU"),
		Cores:      runtime.NumCPU(),
		Memory:     firstField("/proc/meminfo", "MemTotal", "unknown memory"),
		Kernel:     output(ctx, "uname", "-sr"),
		FileSystem: strings.TrimPrefix(output(ctx, "df", "--output=fstype", os.TempDir()), "Type\n"),
		Go:         runtime.Version(),
		Commit:     output(ctx, "git", "rev-parse", "--short", "HEAD"),
		Date:       time.Now().UTC().Truncate(time.Minute),
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load = strings.Join(strings.Fields(string(load))[:3], " ")
	}
	var kib float64
	if _, err := fmt.Sscanf(m.Memory, "%f kB", &kib); err == nil {
		m.Memory = fmt.Sprintf("%.1f GiB", kib/(1<<20))
	}
	if changed := output(ctx, "git", "status", "--porcelain", "--untracked-files=no"); m.Commit != "" && changed != "" {
		m.Commit += " (dirty: there are changes that it does not hold)"
	}
	if !o.built {
		m.Commit += " (the server was given, not built from it)"
	}
	// Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=…
	for _, word := range strings.Fields(output(ctx, redisServer, "--version")) {
		if version, ok := strings.CutPrefix(word, "v="); ok {
			m.Redis = version
		}
	}
	return m
}

// String returns the description as a line of text.
func (m machine) String() string {
	redis := "Redis " + m.Redis
	if m.Redis == "" {
		redis = "no Redis: " + noRedis
	}
	return fmt.Sprintf("%s, %d cores, %s memory, %s, data on %s, load average %s at the start; %s, %s; commit %s; %s",
		m.CPU, m.Cores, m.Memory, m.Kernel, m.FileSystem, m.Load, m.Go, redis, m.Commit, m.Date.Format("2006-01-02 15:04 UTC"))
}

// output returns the trimmed output of a program, "" if it fails.
func output(ctx context.Context, program string, args ...string) string {
	out, err := exec.CommandContext(ctx, program, args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// firstField returns the first value of a name in a file of lines "name : value".
func firstField(file, name, otherwise string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return otherwise
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return otherwise
}
