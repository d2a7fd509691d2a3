package deploy

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// firstDeb is the package that several tests look at.
var firstDeb = sync.OnceValues(func() (string, error) { return buildDeb("0.0.1") })

// buildDeb builds the package of a version and returns its path. Compressing takes most of the time, so only
// drills do it.
func buildDeb(version string) (string, error) {
	binary, err := releaseBuild()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(harness.Binary), "deb-"+version) // removed with mayfly
	cmd := exec.Command("deploy/deb/build", dir)
	cmd.Env = append(cmd.Environ(), "BINARY="+binary, "VERSION="+version, "SOURCE_DATE_EPOCH=1700000000",
		"COMPRESSION="+drill.Pick("none", "none", "gzip"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "mayfly_"+version+"_*.deb"))
	if err != nil || len(files) != 1 {
		return "", fmt.Errorf("the folder has %q, %v", files, err)
	}
	return files[0], nil
}

// TestDeployDeb: the package holds what it should. As a drill, lintian finds nothing: it takes longer than
// all else here.
func TestDeployDeb(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	harness.Need(t, "dpkg-deb")
	deb, err := firstDeb()
	drill.Check(t, err)
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
	if drill.On() {
		harness.Need(t, "lintian")
		harness.Run(t, nil, "lintian", "--allow-root", "--fail-on", "error,warning", deb)
	}
}

// TestDeployDebInstalls installs, upgrades, removes and purges the package in a folder of its own.
func TestDeployDebInstalls(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	asRoot(t)
	harness.Need(t, "dpkg-deb") // and so dpkg
	harness.Need(t, "deb-systemd-helper")
	root := t.TempDir()
	dpkg := func(args ...string) string {
		t.Helper()
		forces := []string{"--force-script-chrootless", "--force-confold", "--force-unsafe-io"}
		args = slices.Concat([]string{"--root=" + root, "--log=" + root + "/dpkg.log"}, forces, args)
		return harness.Run(t, nil, "dpkg", args...)
	}
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates", "var/lib/dpkg/triggers"} {
		drill.Check(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
	}
	for _, file := range []string{"var/lib/dpkg/status", "var/lib/dpkg/available"} {
		drill.Check(t, os.WriteFile(filepath.Join(root, file), nil, 0o644))
	}
	path := func(name string) string { return filepath.Join(root, name) }
	exists := func(name string, want bool) {
		t.Helper()
		if _, err := os.Lstat(path(name)); (err == nil) != want {
			t.Errorf("%s: %v, want it to exist: %v", name, err, want)
		}
	}

	deb, err := firstDeb()
	drill.Check(t, err)
	dpkg("--install", deb)
	exists("usr/bin/mayfly", true)
	exists("etc/systemd/system/multi-user.target.wants/mayfly.service", true)

	// The installed server runs with the installed file.
	conf, err := os.ReadFile(path("etc/mayfly/mayfly.conf"))
	drill.Check(t, err)
	host, port := harness.Host(t), harness.FreePort(t)
	changed := strings.Replace(string(conf), "\n#bind 127.0.0.1 -::1\n", "\nbind "+host+"\nport "+port+"\n", 1)
	drill.Check(t, os.WriteFile(path("etc/mayfly/mayfly.conf"), []byte(changed), 0o640))
	if err := os.MkdirAll(path("var/lib/mayfly"), 0o700); err != nil { // as systemd does
		t.Fatal(err)
	}
	serve := func(visit func(client *redis.Client)) {
		t.Helper()
		cmd := exec.Command(path("usr/bin/mayfly"), path("etc/mayfly/mayfly.conf"))
		cmd.Dir = path("var/lib/mayfly")
		p, client := launch(t, cmd, func(string) string { return net.JoinHostPort(host, port) })
		visit(client)
		p.Terminate()
	}
	serve(func(client *redis.Client) {
		drill.Report(t, client.Set(t.Context(), "a", "b", 0).Err())
	})

	deb, err = buildDeb("0.0.2")
	drill.Check(t, err)
	dpkg("--install", deb)
	if got, err := os.ReadFile(path("etc/mayfly/mayfly.conf")); err != nil || string(got) != changed {
		t.Errorf("the upgrade changes the config file: %v", err)
	}
	serve(func(client *redis.Client) {
		if got, err := client.Get(t.Context(), "a").Result(); err != nil || got != "b" {
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
