// Bench measures mayfly from outside. It starts servers on temporary folders, speaks only the protocol to
// them, and prints tables in Markdown.
//
//	go run ./bench [flags] [mode ...]
//
// Without a mode it compares mayfly with Redis and measures growth. -help lists the modes; README.md explains
// the method.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"mayfly/expiry/clock"
	"mayfly/tools/progress"
)

// mode is one kind of measurement, with its name on the command line.
type mode struct {
	name, purpose string
	run           func(ctx context.Context, o options) error
}

// defaultModes are the modes of a command line that names none.
var defaultModes = []string{"compare", "growth"}

var modes = []mode{
	{"compare", "all workloads of workloads.go, side by side with Redis", benchCompare},
	{"growth", "reads, writes and memory with 10,000 to 10,000,000 documents", benchGrowth},
	{"purge", "documents that die over a minute: the share of dead in memory and what the purge costs", benchPurge},
	{"compaction", "the latency of requests while the server compacts or backs up, compared with that at rest", benchCompaction},
	{"events", "how long after a death its event comes, alone and beside many other items", benchEvents},
	{"cluster", "three nodes beside one that forces each commit to disk, failovers and catching up", benchCluster},
	{"disk", "how much disk documents take that are written and die at a steady pace", benchDisk},
}

// options are the options of all modes.
type options struct {
	quick  bool          // fewer documents and less time, for a first look
	number int           // of documents; 0: the usual number
	effort int           // the only effort of the purge; 0: both
	over   time.Duration // in which all documents of mode purge die; 0: a minute for a million
	mayfly string        // path of the server; empty: build it
	built  bool          // the server was built from the current folder
	port   int           // first of the ports to use
	only   string        // regular expression of the workloads to compare
	json   string        // file for the results of the comparison; empty: none
	write  bool          // write the results into the folder of this program

	machine machine // at the start of the run
}

// ids returns the number of documents.
func (o options) ids() int {
	if o.number > 0 {
		return o.number
	}
	if o.quick {
		return 100_000
	}
	return 1_000_000
}

// rounds returns the number of rounds for each side.
func (o options) rounds() int {
	if o.quick {
		return 3
	}
	return 5
}

// scale returns the number of requests for that of a full run.
func (o options) scale(requests int) int {
	if o.quick {
		return requests / 8
	}
	return requests
}

// span returns the duration for that of a full run.
func (o options) span(d time.Duration) time.Duration {
	if o.quick {
		return d / 5
	}
	return d
}

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "a tenth of the documents and less time, for a first look; do not quote its figures")
	flag.IntVar(&o.number, "ids", 0, "`number` of documents (default 1000000, with -quick 100000)")
	flag.IntVar(&o.effort, "effort", 0, "measure the purge at this `effort` only (default 1 and 10)")
	flag.DurationVar(&o.over, "over", 0, "`time` in which the documents of mode purge die (default a minute for 1000000)")
	flag.StringVar(&o.mayfly, "mayfly", "", "`path` of the server to measure (default: build the one in this folder)")
	flag.IntVar(&o.port, "port", 7060, "first of ten `ports` to use")
	flag.StringVar(&o.only, "only", "", "compare only workloads whose name matches this regular `expression`")
	flag.StringVar(&o.json, "json", "", "write the results of the comparison, with all samples, to this `file`")
	flag.BoolVar(&o.write, "write", false, "write the results to "+resultsMarkdown+", and the plot of the comparison to "+resultsPlot)
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, "usage: go run ./bench [flags] [mode ...]\n\nmodes, "+strings.Join(defaultModes, " and ")+" if none is named:\n")
		for _, m := range modes {
			fmt.Fprintf(os.Stderr, "  %-10s %s\n", m.name, m.purpose)
		}
		fmt.Fprint(os.Stderr, "\nflags:\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o, flag.Args())
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, names []string) error {
	switch {
	case len(names) > 0:
	case o.only != "": // growth has no workloads to choose from
		names = []string{"compare"}
	default:
		names = defaultModes
	}
	var chosen []mode
	for _, name := range names {
		i := slices.IndexFunc(modes, func(m mode) bool { return m.name == name })
		if i < 0 {
			return fmt.Errorf("unknown mode %s: legal are %s", name, modeNames())
		}
		chosen = append(chosen, modes[i])
	}
	if o.mayfly == "" {
		path, remove, err := buildMayfly(ctx)
		if err != nil {
			return err
		}
		defer remove()
		o.mayfly, o.built = path, true
	}
	o.machine = thisMachine(ctx, o)
	fmt.Println(o.machine.String() + "\n")
	s := newStatus(os.Stderr, progress.IsTerminal(os.Stderr), clock.Monotonic)
	defer s.watch()()
	ctx = withStatus(ctx, s)
	for _, m := range chosen {
		s.begin(m.name)
		if err := m.run(ctx, o); err != nil {
			if errors.Is(context.Cause(ctx), context.Canceled) {
				return errors.New("interrupted")
			}
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

func modeNames() string {
	var names []string
	for _, m := range modes {
		names = append(names, m.name)
	}
	return strings.Join(names, ", ")
}
