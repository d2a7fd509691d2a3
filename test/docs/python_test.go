package docs

import (
	"mayfly/test/harness"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocsPythonPrograms runs the programs in Python, which print what the comment at the end of a line says.
func TestDocsPythonPrograms(t *testing.T) {
	t.Parallel() // one loads a million documents
	interpreter, found := harness.Python(t), 0
	for page, text := range harness.Guides(t) {
		for _, program := range harness.Blocks(text, "python") {
			if harness.IsWorker(program) {
				continue
			}
			if found++; testing.Short() && strings.Contains(program, "1_000_000") {
				continue // it loads a million documents
			}
			p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
			here := strings.ReplaceAll(program, "port=6379", "port="+p.Port)
			out, err := exec.Command(interpreter, harness.WriteFile(t, "main.py", here)).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", page, err, out)
			}
			var want string
			for _, m := range regexp.MustCompile(`(?m)^print\(.*\)  # (.*)$`).FindAllStringSubmatch(program, -1) {
				want += m[1] + "\n"
			}
			if string(out) != want || want == "" {
				t.Errorf("%s: a program printed\n%s\nwant\n%s", page, out, want)
			}
		}
	}
	if found == 0 {
		t.Error("there is no program")
	}
}
