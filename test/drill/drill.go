package drill

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

var (
	long  = flag.Bool("drill", false, "tests play their long forms, as before a release")
	again = flag.Uint64("seed", 0, "the seed of random tests; 0 for a new one in each test")
)

// Tests have small heaps and much garbage: with the usual percentage a fourth of their time goes into it. The
// race detector keeps several bytes for each byte of a heap: there a small one costs less.
func init() {
	info, ok := debug.ReadBuildInfo()
	race := ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
	if os.Getenv("GOGC")+os.Getenv("GOMEMLIMIT") == "" && !race {
		debug.SetGCPercent(400)
		debug.SetMemoryLimit(1 << 30)
	}
}

// On reports whether tests play their long forms.
func On() bool { return *long }

// Pick returns what belongs to the speed of this run.
func Pick[T any](quick, all, drill T) T {
	switch {
	case *long:
		return drill
	case testing.Short():
		return quick
	default:
		return all
	}
}

// Slow skips a test that starts processes or waits, unless all tests run.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() && !*long {
		t.Skip("not in the quick form")
	}
}

// Seed returns the seed of a random test. A test that fails logs the command that plays it again.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := cmp.Or(*again, rand.Uint64())
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("play it again: " + command(t.Name(), seed))
		}
	})
	return seed
}

// Seeds plays a random test with as many seeds as belong to the speed of this run.
func Seeds(t *testing.T, quick, all, drill uint64, play func(t *testing.T, seed uint64)) {
	t.Helper()
	first := Seed(t)
	for n := range Pick(quick, all, drill) {
		t.Run(fmt.Sprint("seed ", first+n), func(t *testing.T) { play(t, first+n) })
	}
}

// Rand returns a source of random numbers for a test, with a seed of [Seed].
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Seed(t), 0))
}

// folder is the folder of the package under test, in which go test starts a test.
var folder, _ = os.Getwd()

// command is the command line that runs one test with a seed.
func command(test string, seed uint64) string {
	var pattern []string
	for name := range strings.SplitSeq(test, "/") {
		pattern = append(pattern, "^"+name+"$")
	}
	line := fmt.Sprintf("go test ./%s -run '%s' -seed %d", path(folder), strings.Join(pattern, "/"), seed)
	switch {
	case *long:
		line += " -drill"
	case testing.Short():
		line += " -short"
	}
	return line
}

// path returns the path of a package's folder from the root of its module.
func path(folder string) string {
	for root := folder; root != filepath.Dir(root); root = filepath.Dir(root) {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			rel, _ := filepath.Rel(root, folder) // both are absolute
			return filepath.ToSlash(rel)
		}
	}
	return folder
}
