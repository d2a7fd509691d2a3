package transport

import (
	"sync"
	"time"

	"mayfly/expiry/clock"

	"github.com/rs/zerolog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// limitedLog bounds how often the same kind of warning is logged: unauthenticated machines decide how often
// they connect.
type limitedLog struct {
	log  zerolog.Logger
	mu   sync.Mutex
	last map[string]time.Duration
}

const (
	sameEvery = 10 * time.Second
	mostKinds = 1000
)

func newLimitedLog(log zerolog.Logger) *limitedLog {
	return &limitedLog{log: log, last: map[string]time.Duration{}}
}

// due reports whether a line of this kind may be logged now.
func (l *limitedLog) due(kind string) bool {
	now := clock.Monotonic()
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.last[kind]; ok && now-last < sameEvery {
		return false
	}
	if len(l.last) >= mostKinds {
		clear(l.last)
	}
	l.last[kind] = now
	return true
}

func (l *limitedLog) warn(kind, text string) {
	if l.due(kind) {
		l.log.Warn().Msg(text)
	}
}

// NewZap returns a logger for etcd's packages that hands their lines over to zerolog.
func NewZap(log zerolog.Logger) *zap.Logger {
	return zap.New(&zapCore{log: log, limit: newLimitedLog(log)})
}

// zapCore hands a log over to zerolog. What etcd's packages tell of the course of their work is for
// debugging, and of the same warnings about a peer one in a while is enough.
type zapCore struct {
	log    zerolog.Logger
	limit  *limitedLog
	peer   string // host:port; empty: none
	fields []zapcore.Field
}

// levels are those of rafthttp's messages that do not follow the rule.
var levels = map[string]zerolog.Level{
	"peer became active": zerolog.InfoLevel,
	// serveRaft says it with the address.
	"request cluster ID mismatch": zerolog.DebugLevel,
	// Once for each stream, and while a peer is down again and again.
	"lost TCP streaming connection with remote peer":   zerolog.DebugLevel,
	"closed TCP streaming connection with remote peer": zerolog.DebugLevel,
	"prober detected unhealthy status":                 zerolog.DebugLevel,
	// Each node has its own idea of the time.
	"prober found high clock drift": zerolog.DebugLevel,
}

// level returns the level of an entry.
func level(e zapcore.Entry) zerolog.Level {
	if l, ok := levels[e.Message]; ok {
		return l
	}
	switch {
	case e.Level >= zapcore.ErrorLevel:
		return zerolog.ErrorLevel
	case e.Level == zapcore.WarnLevel:
		return zerolog.WarnLevel
	}
	return zerolog.DebugLevel
}

func (c *zapCore) Enabled(l zapcore.Level) bool { return l >= zapcore.InfoLevel }

func (c *zapCore) With(fields []zapcore.Field) zapcore.Core {
	with := *c
	with.fields = append(append([]zapcore.Field(nil), c.fields...), fields...)
	return &with
}

func (c *zapCore) Check(e zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) && max(c.log.GetLevel(), zerolog.GlobalLevel()) <= level(e) {
		return checked.AddCore(e, c)
	}
	return checked
}

func (c *zapCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	l := level(e)
	if l >= zerolog.WarnLevel && !c.limit.due(c.peer+" "+e.Message) {
		return nil
	}
	encoder := zapcore.NewMapObjectEncoder()
	for _, f := range c.fields {
		f.AddTo(encoder)
	}
	for _, f := range fields {
		f.AddTo(encoder)
	}
	c.log.WithLevel(l).Fields(encoder.Fields).Msg(e.Message)
	return nil
}

func (c *zapCore) Sync() error { return nil }
