package main

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/server/config"

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

// reportLoading logs how much of a data folder is loaded, at intervals, until stop is called. loaded counts its bytes.
func reportLoading(log zerolog.Logger, dir string, loaded *atomic.Int64, interval time.Duration) (stop func()) {
	ticker, stopped := time.NewTicker(interval), make(chan struct{})
	var reports sync.WaitGroup
	reports.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-ticker.C:
				done, all := loaded.Load(), filesSize(dir)
				log.Info().Int64("mb", done>>20).Int64("of", max(done, all)>>20).Msg("loading")
			}
		}
	})
	return func() {
		close(stopped)
		reports.Wait()
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
