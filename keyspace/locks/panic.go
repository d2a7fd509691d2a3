package locks

import (
	"fmt"
	"runtime/debug"
)

// EndProcessOnPanic ends the process if the deferring function panics: it panics again where nothing can
// recover.
func EndProcessOnPanic() {
	if p := recover(); p != nil {
		stack := debug.Stack()
		go panic(fmt.Sprintf("%v\n%s", p, stack))
		select {}
	}
}
