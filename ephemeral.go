package main

import (
	"fmt"
	"os"

	"mayfly/expiry/clock"
	"mayfly/keyspace/datadir"
	"mayfly/server/config"
	"mayfly/vfs"

	"github.com/rs/zerolog"
)

// beginEphemeral takes a private folder for the data, if nothing is to outlast the process. end removes it.
func beginEphemeral(options *config.Config, log zerolog.Logger) (end func(), err error) {
	if !options.Settings().Ephemeral {
		return func() {}, nil
	}
	folder, err := datadir.NewEphemeral(vfs.OS, os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("option ephemeral with value \"yes\" needs a folder for its files, which TMPDIR names: %w", err)
	}
	options.KeepIn(folder.Dir)
	log.Warn().Str("dir", folder.Dir).Msg("ephemeral yes: all data is gone when the server ends; this is for tests")
	return func() {
		if err := folder.Remove(); err != nil {
			log.Error().Err(err).Msg("cannot remove the ephemeral data; the next start with ephemeral yes tries again")
		}
	}, nil
}

// newClock returns the clock that clients move, nil with the system's.
func newClock(settings *config.Settings, log zerolog.Logger) *clock.Manual {
	if !settings.ManualClock {
		return nil
	}
	start := settings.ClockStart
	if start == 0 {
		start = clock.NewSystem(0).Now()
	}
	log.Warn().Str("begins", clock.FormatMoment(start)).Msg("clock manual: time stands still until CLOCK ADVANCE or CLOCK SET; this is for tests")
	return clock.NewManual(start)
}
