package deploy

import (
	"mayfly/test/harness"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// debs are the packages that were built, by version.
var debs = map[string]string{}

// buildDeb builds the package of a version, once for all tests, and returns its path.
func buildDeb(t *testing.T, version string) string {
	t.Helper()
	harness.Need(t, "dpkg-deb")
	if deb := debs[version]; deb != "" {
		return deb
	}
	dir := filepath.Join(filepath.Dir(harness.Binary), "deb")
	harness.Run(t, []string{"BINARY=" + releaseBinary(t), "VERSION=" + version, "COMPRESSION=gzip", "SOURCE_DATE_EPOCH=1700000000"}, "deploy/deb/build", dir)
	files, err := filepath.Glob(filepath.Join(dir, "mayfly_"+version+"_*.deb"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the folder has %q, %v", files, err)
	}
	debs[version] = files[0]
	return files[0]
}

// TestDeployDeb: the package holds what it should, and lintian finds nothing.
func TestDeployDeb(t *testing.T) {
	deb := buildDeb(t, "0.0.1")
	got := regexp.MustCompile(`(?m)^(\S+) (\S+) +\d+ \S+ \S+ \.(\S+[^/\n])$`).FindAllStringSubmatch(harness.Run(t, nil, "dpkg-deb", "--contents", deb), -1)
	want := []string{
		"-rw-r----- root/root /etc/mayfly/mayfly.conf",
		"-rwxr-xr-x root/root /usr/bin/mayfly",
		"-rw-r--r-- root/root /usr/lib/systemd/system/mayfly.service",
		"-rw-r--r-- root/root /usr/share/doc/mayfly/CHANGELOG.md.gz",
		"-rw-r--r-- root/root /usr/share/doc/mayfly/changelog.gz",
		"-rw-r--r-- root/root /usr/share/doc/mayfly/copyright",
		"-rw-r--r-- root/root /usr/share/doc/mayfly/licenses.gz",
		"-rw-r--r-- root/root /usr/share/lintian/overrides/mayfly",
		"-rw-r--r-- root/root /usr/share/man/man1/mayfly.1.gz",
		"-rw-r--r-- root/root /usr/share/man/man5/mayfly.conf.5.gz",
	}
	var files []string
	for _, m := range got {
		files = append(files, strings.Join(m[1:], " "))
	}
	if a, b := strings.Join(files, "\n"), strings.Join(want, "\n"); a != b {
		t.Errorf("the package has\n%s\nwant\n%s", a, b)
	}
	harness.Need(t, "lintian")
	harness.Run(t, nil, "lintian", "--allow-root", "--fail-on", "error,warning", deb)
}

// TestDeployDebInstalls installs, upgrades, removes and purges the package in a folder of its own.
func TestDeployDebInstalls(t *testing.T) {
	asRoot(t)
	harness.Need(t, "dpkg")
	harness.Need(t, "deb-systemd-helper")
	root := t.TempDir()
	dpkg := func(args ...string) string {
		t.Helper()
		return harness.Run(t, nil, "dpkg", append([]string{"--root=" + root, "--force-script-chrootless", "--force-confold", "--log=" + root + "/dpkg.log"}, args...)...)
	}
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"var/lib/dpkg/status", "var/lib/dpkg/available"} {
		if err := os.WriteFile(filepath.Join(root, file), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := func(name string) string { return filepath.Join(root, name) }
	exists := func(name string, want bool) {
		t.Helper()
		if _, err := os.Lstat(path(name)); (err == nil) != want {
			t.Errorf("%s: %v, want it to exist: %v", name, err, want)
		}
	}

	dpkg("--install", buildDeb(t, "0.0.1"))
	exists("usr/bin/mayfly", true)
	exists("etc/systemd/system/multi-user.target.wants/mayfly.service", true)

	// The installed server runs with the installed file.
	conf, err := os.ReadFile(path("etc/mayfly/mayfly.conf"))
	if err != nil {
		t.Fatal(err)
	}
	port := harness.FreePort(t)
	changed := strings.Replace(string(conf), "\n#port 6379\n", "\nport "+port+"\n", 1)
	if err := os.WriteFile(path("etc/mayfly/mayfly.conf"), []byte(changed), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(path("var/lib/mayfly"), 0o700); err != nil { // as systemd does
		t.Fatal(err)
	}
	serve := func(visit func(p *harness.Process)) {
		t.Helper()
		p := &harness.Process{T: t, Port: port}
		p.Cmd = exec.Command(path("usr/bin/mayfly"), path("etc/mayfly/mayfly.conf"))
		p.Cmd.Dir, p.Cmd.Stderr = path("var/lib/mayfly"), &p.Log
		if err := p.Cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Discard)
		for end := time.Now().Add(harness.Patience); p.Client().Ping(t.Context()).Err() != nil; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("no PONG\n%s", &p.Log)
			}
		}
		visit(p)
		p.Terminate()
	}
	serve(func(p *harness.Process) {
		if err := p.Client().Set(t.Context(), "a", "b", 0).Err(); err != nil {
			t.Error(err)
		}
	})

	dpkg("--install", buildDeb(t, "0.0.2"))
	if got, err := os.ReadFile(path("etc/mayfly/mayfly.conf")); err != nil || string(got) != changed {
		t.Errorf("the upgrade changes the config file: %v", err)
	}
	serve(func(p *harness.Process) {
		if got, err := p.Client().Get(t.Context(), "a").Result(); err != nil || got != "b" {
			t.Errorf("after the upgrade: %q, %v", got, err)
		}
	})

	dpkg("--remove", "mayfly")
	exists("usr/bin/mayfly", false)
	exists("etc/mayfly/mayfly.conf", true)
	exists("var/lib/mayfly/data/LOCK", true)
	if out := dpkg("--purge", "mayfly"); !strings.Contains(out, "The data of mayfly stays") {
		t.Errorf("the purge does not say where the data is: %s", out)
	}
	exists("etc/mayfly", false)
	exists("etc/systemd/system/multi-user.target.wants/mayfly.service", false)
	exists("var/lib/mayfly/data/LOCK", true)
}
