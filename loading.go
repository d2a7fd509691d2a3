package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/server/config"
	"mayfly/server/daemon"

	"github.com/mattn/go-isatty"
	"github.com/rs/zerolog"
)

// reportInterval returns how often a start that takes long says how far it is. A user who waits at a terminal
// learns it each second.
func reportInterval(settings *config.Settings) time.Duration {
	if settings.LogFile == "" && isatty.IsTerminal(os.Stderr.Fd()) {
		return time.Second
	}
	return 10 * time.Second
}

// reportLoading logs how much of the data folder is loaded, at intervals, until stop is called. loaded counts its bytes. A node of
// a cluster that has loaded all waits for a leader, which other lines tell.
func reportLoading(settings *config.Settings, log zerolog.Logger, loaded *atomic.Int64, interval time.Duration) (stop func()) {
	return every(interval, func() {
		done, all := loaded.Load(), filesSize(settings.Dir)
		if done >= all && settings.Cluster.ID != "" {
			return
		}
		log.Info().Int64("mb", done>>20).Int64("of", max(done, all)>>20).Msg("loading")
	})
}

// A start asks systemd for startExtension more whenever startNotices have passed, until it is over.
const (
	startNotices   = 5 * time.Second
	startExtension = time.Minute
)

// notifyStarting keeps systemd from ending a start that takes long, and says how far the start is, at intervals, until stop
// is called. loaded counts the bytes that are loaded.
func notifyStarting(settings *config.Settings, log zerolog.Logger, loaded *atomic.Int64, interval time.Duration) (stop func()) {
	return every(interval, func() {
		status := "loading"
		if done, all := loaded.Load(), filesSize(settings.Dir); done < all {
			status = fmt.Sprintf("loading: %d of %d MB", done>>20, all>>20)
		} else if settings.Cluster.ID != "" {
			status = "waiting for a leader of the cluster"
		}
		daemon.Notify(settings, log, fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d\nSTATUS=%s", startExtension.Microseconds(), status))
	})
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
	files, _ := filepath.Glob(filepath.Join(dir, "*.db"))
	for _, file := range files {
		if fi, err := os.Stat(file); err == nil {
			size += fi.Size()
		}
	}
	return size
}
