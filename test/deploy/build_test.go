package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// releaseBinary returns the path of the binary that deploy/build makes. It is built once for all tests.
func releaseBinary(t *testing.T) string {
	t.Helper()
	path, err := releaseBuild()
	drill.Check(t, err)
	return path
}

var releaseBuild = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(harness.Binary), "release")
	cmd := exec.Command("deploy/build", path)
	cmd.Stderr = os.Stderr
	return path, cmd.Run()
})

// launch starts a program that is a server at an address, and waits for its PONG. The program is killed when
// the test ends.
func launch(t *testing.T, cmd *exec.Cmd, address func(log string) string) (*harness.Process, *redis.Client) {
	t.Helper()
	p := &harness.Process{T: t, Cmd: cmd}
	cmd.Stdout, cmd.Stderr = &p.Log, &p.Log
	drill.Check(t, cmd.Start())
	t.Cleanup(p.Discard)
	harness.WaitFor(t, "an address", func() bool { return address(p.Log.String()) != "" })
	client := connect(t, address(p.Log.String()), "")
	harness.WaitFor(t, "PONG", func() bool { return client.Ping(t.Context()).Err() == nil })
	return p, client
}

// connect connects a client, which is closed when the test ends.
func connect(t *testing.T, address, password string) *redis.Client {
	c := redis.NewClient(&redis.Options{
		Addr: address, Password: password, MaxRetries: -1, DialerRetries: 1, ReadTimeout: harness.Patience,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// asRoot skips a test that needs the rights of root.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		harness.Absent(t, "the tests do not run as root")
	}
}

// TestDeployBuild: the release binary is static, and names neither the folder nor the commit of its build.
// As a drill, a checkout elsewhere gives the same bytes. Both builds may take compiled packages from the same
// cache, so what is new is that they are linked alike.
func TestDeployBuild(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	release := releaseBinary(t)
	a, err := os.ReadFile(release)
	drill.Check(t, err)
	folder, err := os.Getwd()
	drill.Check(t, err)
	if bytes.Contains(a, []byte(folder+"/")) {
		t.Errorf("the binary names the folder of its build, %s", folder)
	}
	settings := harness.Run(t, nil, "go", "version", "-m", release)
	for setting, want := range map[string]bool{"CGO_ENABLED=0": true, "-trimpath=true": true, "vcs.": false} {
		if strings.Contains(settings, "\tbuild\t"+setting) != want {
			t.Errorf("want %s: %t, the binary has\n%s", setting, want, settings)
		}
	}
	if !drill.On() {
		return
	}
	tree := filepath.Join(t.TempDir(), "elsewhere")
	drill.Check(t, os.Mkdir(tree, 0o755))
	files := harness.Run(t, []string{"GOWORK=off"}, "go", "list", "-deps", "-f",
		`{{if .Module}}{{if .Module.Main}}{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}} {{end}}{{range .EmbedFiles}}{{$dir}}/{{.}} {{end}}{{end}}{{end}}`, ".")
	copies := []string{"--parents", "-t", tree, "go.mod", "go.sum", "deploy/build"}
	for file := range strings.FieldsSeq(files) {
		copies = append(copies, strings.TrimPrefix(file, folder+"/"))
	}
	harness.Run(t, nil, "cp", copies...)
	second := filepath.Join(t.TempDir(), "mayfly")
	harness.Run(t, nil, filepath.Join(tree, "deploy/build"), second)
	b, err := os.ReadFile(second)
	drill.Check(t, err)
	if !bytes.Equal(a, b) {
		t.Errorf("two builds differ: %d and %d bytes", len(a), len(b))
	}
}

// TestDocsInstall runs the commands of docs/install.md that install by hand, in a folder that stands for the
// root. The files of deploy that the other commands name exist.
func TestDocsInstall(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	lines := strings.Join(harness.Blocks(harness.Guides(t)["docs/install.md"], "sh"), "")
	for _, word := range strings.Fields(lines) {
		if strings.HasPrefix(word, "deploy/") {
			if _, err := os.Stat(word); err != nil {
				t.Errorf("docs/install.md: %v", err)
			}
		}
	}
	root := t.TempDir()
	for _, dir := range []string{"usr/bin", "etc/systemd/system"} {
		drill.Check(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	release := releaseBinary(t)
	installed := 0
	for line := range strings.Lines(lines) {
		args := strings.Fields(line)
		if args[0] != "install" {
			continue
		}
		installed++
		for i, arg := range args {
			switch {
			case arg == "mayfly":
				args[i] = release
			case strings.HasPrefix(arg, "/"):
				args[i] = root + arg
			}
		}
		harness.Run(t, nil, args[0], args[1:]...)
	}
	if installed == 0 {
		t.Error("docs/install.md installs nothing by hand")
	}
	if got := harness.Run(t, nil, filepath.Join(root, unitBinary(t)), "--version"); !strings.HasPrefix(got, "mayfly ") {
		t.Errorf("the installed binary prints %q", got)
	}
}

// unitBinary returns the path of the binary in the unit.
func unitBinary(t *testing.T) string {
	t.Helper()
	unit, err := os.ReadFile("deploy/systemd/mayfly.service")
	drill.Check(t, err)
	_, rest, _ := strings.Cut(string(unit), "\nExecStart=")
	return strings.Fields(rest)[0]
}
