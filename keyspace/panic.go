package keyspace

import (
	"fmt"
	"runtime/debug"
)

// endProcessOnPanic ends the process if the deferring function panics: it panics again where nothing can recover.
func endProcessOnPanic() {
	if p := recover(); p != nil {
		stack := debug.Stack()
		go panic(fmt.Sprintf("%v\n%s", p, stack))
		select {}
	}
}
