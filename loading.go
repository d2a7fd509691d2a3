package main

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
	"mayfly/server"
	"mayfly/server/config"
	"mayfly/tools/chart"
	"mayfly/tools/progress"

	"github.com/rs/zerolog"
)

// reportInterval returns how often a start that takes long says how far it is. A user who waits at a terminal
// learns it each second.
func reportInterval(settings *config.Settings) time.Duration {
	if settings.LogFile == "" && progress.IsTerminal(os.Stderr) {
		return time.Second
	}
	return 10 * time.Second
}

// loading is the load of a data folder, which may take long. Its methods may be called concurrently.
type loading struct {
	settings *config.Settings
	log      zerolog.Logger
	now      func() time.Duration
	began    time.Duration
	loaded   atomic.Int64 // bytes
}

func newLoading(settings *config.Settings, log zerolog.Logger) *loading {
	return &loading{settings: settings, log: log, now: clock.Monotonic, began: clock.Monotonic()}
}

// rate returns the bytes that are loaded a second, and how many seconds the rest takes.
func (l *loading) rate(done, all int64) (perSecond float64, left int64, known bool) {
	return progress.Rate(l.now()-l.began, done, all)
}

// report logs how much of the data folder is loaded. A node of a cluster that has loaded all waits for a
// leader, which other lines tell.
func (l *loading) report() {
	done, all := l.loaded.Load(), filesSize(l.settings.Dir)
	if done >= all && l.settings.Cluster.ID != "" {
		return
	}
	line := l.log.Info().Int64("mb", done>>20).Int64("of", max(done, all)>>20)
	if perSecond, left, known := l.rate(done, all); known && done < all {
		line = line.Int64("mb_per_second", int64(perSecond)>>20).Int64("seconds_left", left)
	}
	line.Msg("loading")
}

// A start asks systemd for startExtension more whenever startNotices have passed, until it is over.
const (
	startNotices   = 5 * time.Second
	startExtension = time.Minute
)

// notify keeps systemd from ending a start that takes long, and tells it how far the start is.
func (l *loading) notify() {
	status := "loading"
	if done, all := l.loaded.Load(), filesSize(l.settings.Dir); done < all {
		status = fmt.Sprintf("loading: %d of %d MB", done>>20, all>>20)
		if perSecond, left, known := l.rate(done, all); known {
			status += fmt.Sprintf(", %.0f MB/s, %s left", perSecond/(1<<20), chart.Span(left))
		}
	} else if l.settings.Cluster.ID != "" {
		status = "waiting for a leader of the cluster"
	}
	server.Notify(l.settings, l.log, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d\nSTATUS=%s", startExtension.Microseconds(), status))
}

// every calls do at intervals until stop is called. No call is under way when stop returns.
func every(interval time.Duration, do func()) (stop func()) {
	ticker, stopped := time.NewTicker(interval), make(chan struct{})
	var calls sync.WaitGroup
	calls.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-ticker.C:
				do()
			}
		}
	})
	return func() {
		close(stopped)
		calls.Wait()
	}
}

// filesSize returns the size in bytes of a data folder's stores and journals.
func filesSize(dir string) (size int64) {
	files, _ := os.ReadDir(dir)
	for _, file := range files {
		if fi, err := file.Info(); err == nil && strings.HasSuffix(file.Name(), ".db") {
			size += fi.Size()
		}
	}
	return size
}
