package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// clockPage has files to copy for tests of programs, one that starts a server and one that uses it, in each
// language.
const clockPage = "docs/testing-your-program.md"

// TestDocsClockFiles runs the tests of the page that move the clock.
func TestDocsClockFiles(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	text := harness.Guides(t)[clockPage]
	run := func(t *testing.T, language string, names [2]string, command func(dir string) *exec.Cmd) {
		t.Parallel()
		files := harness.Blocks(text, language)
		if len(files) != len(names) {
			t.Fatalf("%s has %d files, want %q", clockPage, len(files), names)
		}
		cmd := command(harness.SourceFolder(t, map[string]string{names[0]: files[0], names[1]: files[1]}))
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(harness.Binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	t.Run("go", func(t *testing.T) {
		run(t, "go", [2]string{"mayfly_test.go", "orders_test.go"}, func(dir string) *exec.Cmd {
			return exec.Command("go", "test", "-count=1", "-ldflags=-s -w", filepath.Join(dir, "mayfly_test.go"), filepath.Join(dir, "orders_test.go"))
		})
	})
	t.Run("python", func(t *testing.T) {
		python := harness.Python(t)
		run(t, "python", [2]string{"mayfly.py", "test_sessions.py"}, func(dir string) *exec.Cmd {
			cmd := exec.Command(python, "-m", "unittest", "test_sessions")
			cmd.Dir = dir
			return cmd
		})
	})
}
