package admin

import (
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
)

// Figures of the process from the operating system, for INFO. A figure that the system does not give is 0.

// heapObjects is the metric of the objects on the heap. It includes garbage that is not collected yet.
const heapObjects = "/memory/classes/heap/objects:bytes"

// allocatorReport lists the runtime's figures of memory in bytes, one a line.
func allocatorReport() string {
	var out strings.Builder
	for _, m := range metrics.All() {
		if strings.HasPrefix(m.Name, "/memory/classes/") {
			fmt.Fprintf(&out, "%s %d\n", m.Name, readMetric(m.Name))
		}
	}
	return out.String()
}

// garbageCycles returns the number of completed garbage collections.
func garbageCycles() uint64 { return readMetric("/gc/cycles/total:gc-cycles") }

// readMetric reads a metric of the runtime, without stopping the world.
func readMetric(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}

// residentBytes returns the physical memory of the process; Linux only.
func residentBytes() uint64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	return numberAt(string(text), 1) * uint64(os.Getpagesize())
}

// systemBytes returns the physical memory of the machine; Linux only.
func systemBytes() uint64 {
	text, err := os.ReadFile("/proc/meminfo") // "MemTotal:  24684084 kB" comes first
	if err != nil {
		return 0
	}
	return numberAt(string(text), 1) * 1024
}

// numberAt returns the number at an index among the words of a text.
func numberAt(text string, place int) uint64 {
	words := strings.Fields(text)
	if place >= len(words) {
		return 0
	}
	n, err := strconv.ParseUint(words[place], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// operatingSystem returns the name of the system, its release and the architecture.
func operatingSystem() string {
	name := runtime.GOOS
	if text, err := os.ReadFile("/proc/sys/kernel/ostype"); err == nil {
		name = strings.TrimSpace(string(text))
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		name += " " + strings.TrimSpace(string(text))
	}
	return name + " " + runtime.GOARCH
}

// cpuSeconds returns the processor time of the process, or of its ended children, in the system and in
// user code.
func cpuSeconds(children bool) (system, user float64) {
	who := syscall.RUSAGE_SELF
	if children {
		who = syscall.RUSAGE_CHILDREN
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		return 0, 0
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)/1e6 }
	return seconds(usage.Stime), seconds(usage.Utime)
}
