package cluster

import (
	"fmt"

	"github.com/rs/zerolog"
)

// raftLogger writes the lines of raft to a zerolog logger. What they tell people is told by this package
// already, so the lower levels are one lower.
type raftLogger struct{ log zerolog.Logger }

func (l raftLogger) write(level zerolog.Level, text string) {
	l.log.WithLevel(level).Msg("raft: " + text)
}

func (l raftLogger) Debug(v ...any)                 { l.log.Trace().Msg("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Debugf(format string, v ...any) { l.log.Trace().Msgf("raft: "+format, v...) }
func (l raftLogger) Info(v ...any)                  { l.log.Debug().Msg("raft: " + fmt.Sprint(v...)) }
func (l raftLogger) Infof(format string, v ...any)  { l.log.Debug().Msgf("raft: "+format, v...) }
func (l raftLogger) Warning(v ...any)               { l.write(zerolog.WarnLevel, fmt.Sprint(v...)) }
func (l raftLogger) Warningf(format string, v ...any) {
	l.write(zerolog.WarnLevel, fmt.Sprintf(format, v...))
}
func (l raftLogger) Error(v ...any) { l.write(zerolog.ErrorLevel, fmt.Sprint(v...)) }
func (l raftLogger) Errorf(format string, v ...any) {
	l.write(zerolog.ErrorLevel, fmt.Sprintf(format, v...))
}
func (l raftLogger) Fatal(v ...any)                 { l.Panic(v...) }
func (l raftLogger) Fatalf(format string, v ...any) { l.Panicf(format, v...) }

// Panic ends the incarnation: the core recovers.
func (l raftLogger) Panic(v ...any) {
	l.write(zerolog.ErrorLevel, fmt.Sprint(v...))
	panic(fmt.Sprint(v...))
}

// Panicf is Panic with a format.
func (l raftLogger) Panicf(format string, v ...any) { l.Panic(fmt.Sprintf(format, v...)) }
