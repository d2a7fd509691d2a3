package cluster

import (
	"fmt"

	"github.com/rs/zerolog"
	"go.etcd.io/raft/v3"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLoggers returns the loggers of etcd's packages. What they tell people is told by this package already,
// so they log at the level below.
func newLoggers(log zerolog.Logger) (*zap.Logger, raft.Logger) {
	return zap.New(zapCore{log: log}), raftLogger{log}
}

func toZerolog(level zapcore.Level) zerolog.Level {
	switch {
	case level >= zapcore.ErrorLevel:
		return zerolog.ErrorLevel
	case level >= zapcore.WarnLevel:
		return zerolog.WarnLevel
	case level >= zapcore.InfoLevel:
		return zerolog.DebugLevel
	}
	return zerolog.TraceLevel
}

// zapCore writes the lines of zap's loggers to a zerolog logger.
type zapCore struct {
	log    zerolog.Logger
	fields []zapcore.Field
}

func (c zapCore) Enabled(level zapcore.Level) bool {
	return c.log.GetLevel() <= toZerolog(level) && zerolog.GlobalLevel() <= toZerolog(level)
}

func (c zapCore) With(fields []zapcore.Field) zapcore.Core {
	c.fields = append(append([]zapcore.Field(nil), c.fields...), fields...)
	return c
}

func (c zapCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c zapCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	values := zapcore.NewMapObjectEncoder()
	for _, f := range append(append([]zapcore.Field(nil), c.fields...), fields...) {
		f.AddTo(values)
	}
	c.log.WithLevel(toZerolog(e.Level)).Fields(values.Fields).Msg("raft: " + e.Message)
	return nil
}

func (c zapCore) Sync() error { return nil }

// raftLogger writes the lines of raft to a zerolog logger.
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
