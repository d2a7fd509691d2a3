// Bench measures mayfly from outside: it starts servers on temporary folders, speaks only the
// protocol to them, and prints tables in Markdown.
//
//	go run ./bench [flags] [mode ...]
//
// Without a mode it runs all of them. See -help.
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
)

// mode is one measurement, under the name by which the command line calls it.
type mode struct {
	name, purpose string
	run           func(ctx context.Context, o options) error
}

var modes = []mode{
	{"purge", "documents that die over a minute: the share of dead in memory and what the purge costs", benchPurge},
}

// options are what the command line sets for all modes.
type options struct {
	quick  bool   // a tenth of the work, for a first look
	mayfly string // path of the server; empty: build it
	port   int    // the first of the ports to use
}

func main() {
	var o options
	flag.BoolVar(&o.quick, "quick", false, "a tenth of the work, for a first look; the figures are not to be quoted")
	flag.StringVar(&o.mayfly, "mayfly", "", "`path` of the server to measure (default: build the one in this folder)")
	flag.IntVar(&o.port, "port", 7060, "first of ten `ports` to use")
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, "usage: go run ./bench [flags] [mode ...]\n\nmodes:\n")
		for _, m := range modes {
			fmt.Fprintf(os.Stderr, "  %-8s %s\n", m.name, m.purpose)
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
	chosen := modes
	if len(names) > 0 {
		chosen = nil
	}
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
		o.mayfly = path
	}
	fmt.Print(whereAndWhat(ctx))
	for _, m := range chosen {
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
