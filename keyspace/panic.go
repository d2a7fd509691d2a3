package keyspace

import (
	"fmt"
	"runtime/debug"
)

// endProcess panics where nothing can recover, so that the process ends.
func endProcess(p any) {
	stack := debug.Stack()
	go panic(fmt.Sprintf("%v\n%s", p, stack))
	select {}
}
