package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// python returns a Python that knows redis-py.
func python(t *testing.T) string {
	t.Helper()
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import redis").Run() == nil {
			return python
		}
	}
	absent(t, "no python3 knows the module redis (Debian: python3-redis)")
	return ""
}

// TestDocsPythonPrograms runs the programs in Python, which print what the comment at the end of a line says.
func TestDocsPythonPrograms(t *testing.T) {
	t.Parallel() // one loads a million documents
	interpreter, found := python(t), 0
	for page, text := range guides(t) {
		for _, program := range blocks(text, "python") {
			if isWorker(program) {
				continue
			}
			if found++; testing.Short() && strings.Contains(program, "1_000_000") {
				continue // it loads a million documents
			}
			p := start(t, filepath.Join(t.TempDir(), "data"))
			here := strings.ReplaceAll(program, "port=6379", "port="+p.port)
			out, err := exec.Command(interpreter, writeFile(t, "main.py", here)).CombinedOutput()
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
