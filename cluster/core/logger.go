package core

import (
	"fmt"

	"go.etcd.io/raft/v3"
)

// logger passes raft's messages on. Its panics carry the text to Core.guard without a line in the log.
type logger struct{ raft.Logger }

func (l logger) Panic(v ...any)                 { panic(fmt.Sprint(v...)) }
func (l logger) Panicf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
func (l logger) Fatal(v ...any)                 { panic(fmt.Sprint(v...)) }
func (l logger) Fatalf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }

// discard is a logger without output.
type discard struct{}

func (discard) Debug(...any)            {}
func (discard) Debugf(string, ...any)   {}
func (discard) Error(...any)            {}
func (discard) Errorf(string, ...any)   {}
func (discard) Info(...any)             {}
func (discard) Infof(string, ...any)    {}
func (discard) Warning(...any)          {}
func (discard) Warningf(string, ...any) {}
func (discard) Fatal(...any)            {}
func (discard) Fatalf(string, ...any)   {}
func (discard) Panic(...any)            {}
func (discard) Panicf(string, ...any)   {}
