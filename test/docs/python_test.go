package docs

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// fewer turns the numbers of a program that loads a million documents into those of ten thousand.
var fewer = strings.NewReplacer("00_000", "_000", "600000", "6000", "400000", "4000", "1000000", "10000")

// TestDocsPythonPrograms runs the programs in Python, which print what the comment at the end of a line says.
// All numbers of documents are those of the page only in drills.
func TestDocsPythonPrograms(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	interpreter, found := harness.Python(t), 0
	for page, text := range harness.Guides(t) {
		for _, program := range harness.Blocks(text, "python") {
			if harness.IsWorker(program) || page == clusterPage || page == clockPage { // see TestDocsClusterInPython and TestDocsClockFiles
				continue
			}
			found++
			if !drill.On() {
				program = fewer.Replace(program)
			}
			t.Run(page, func(t *testing.T) {
				t.Parallel()
				p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
				here := strings.ReplaceAll(program, "port=6379", "port="+p.Port)
				out, err := exec.Command(interpreter, harness.WriteFile(t, "main.py", here)).CombinedOutput()
				var want string
				for _, m := range regexp.MustCompile(`(?m)^print\(.*\)  # (.*)$`).FindAllStringSubmatch(program, -1) {
					want += m[1] + "\n"
				}
				if err != nil || string(out) != want || want == "" {
					t.Errorf("a program printed\n%s\n%v\nwant\n%s", out, err, want)
				}
			})
		}
	}
	if found == 0 {
		t.Error("there is no program")
	}
}
