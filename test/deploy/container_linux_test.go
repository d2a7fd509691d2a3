package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// imageUser is the user and the group of the image.
const imageUser = 65532

// builder runs buildah with a storage of its own.
type builder struct {
	t     *testing.T
	graph string // folder of images and containers
	env   []string
}

func newBuilder(t *testing.T) *builder {
	t.Helper()
	asRoot(t)
	harness.Need(t, "buildah")
	dir := t.TempDir()
	config := harness.WriteFile(t, "storage.conf", fmt.Sprintf("[storage]\ndriver = \"vfs\"\ngraphroot = %q\nrunroot = %q\n", dir+"/graph", dir+"/run"))
	b := &builder{t, dir + "/graph", []string{"CONTAINERS_STORAGE_CONF=" + config, "STORAGE_DRIVER=vfs", "BUILDAH_ISOLATION=chroot"}}
	t.Cleanup(func() {
		for _, args := range [][]string{{"rm", "--all"}, {"rmi", "--all", "--force"}} {
			cmd := exec.Command("buildah", args...) // the context of the test has ended
			cmd.Env = append(os.Environ(), b.env...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("buildah %q: %v\n%s", args, err, out)
			}
		}
	})
	return b
}

func (b *builder) run(args ...string) string {
	b.t.Helper()
	return harness.Run(b.t, b.env, "buildah", args...)
}

// serve runs the server of a container and returns a client of it and a function that stops it. options are
// those of buildah run.
func (b *builder) serve(options []string, container string, args ...string) (client *redis.Client, stop func()) {
	b.t.Helper()
	options = append(append([]string{"run"}, options...), container, "--", "/usr/bin/mayfly", "--port", "auto")
	cmd := exec.Command("buildah", append(options, args...)...)
	cmd.Env = append(os.Environ(), b.env...)
	p, client := launch(b.t, cmd, func(log string) string {
		m := regexp.MustCompile(`listens on \S*(:[0-9]+)`).FindStringSubmatch(log)
		if m == nil {
			return ""
		}
		return "127.0.0.1" + m[1] // it listens on all addresses
	})
	harness.WaitFor(b.t, "the log line ready", func() bool { return strings.Contains(p.Log.String(), "ready") })
	return client, func() {
		b.t.Helper()
		_ = client.Shutdown(context.Background()) // it closes the connection instead of a reply
		if code := p.Wait(); code != 0 {
			b.t.Fatalf("the container ends with %d", code)
		}
	}
}

// TestDeployContainer builds the image and runs it twice on its volume, which buildah makes of /data at the
// first start.
func TestDeployContainer(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	b := newBuilder(t)
	harness.Run(t, append(b.env, "BUILDER=buildah", "BINARY="+releaseBinary(t)), "deploy/container/build", "mayfly-test")

	var image struct {
		OCIv1 struct {
			Config struct {
				User, StopSignal, WorkingDir string
				Env, Entrypoint, Cmd         []string
				Volumes                      map[string]struct{}
			} `json:"config"`
		}
	}
	drill.Check(t, json.Unmarshal([]byte(b.run("inspect", "--type", "image", "localhost/mayfly-test")), &image))
	config := &image.OCIv1.Config
	if _, ok := config.Volumes["/data"]; !ok || config.User != "65532:65532" || config.StopSignal != "SIGTERM" || !slices.Equal(config.Entrypoint, []string{"/usr/bin/mayfly"}) || len(config.Cmd) > 0 {
		t.Errorf("the configuration of the image is %+v", config)
	}

	container := b.run("from", "localhost/mayfly-test")
	root := b.run("mount", container)
	checkImageFiles(t, root)

	client, stop := b.serve(nil, container)
	ctx := t.Context()
	drill.Report(t, client.Do(ctx, "DOC.PUT", "0", "tea", `{"green":true}`).Err())
	if got, err := client.Info(ctx, "server").Result(); err != nil || !strings.Contains(got, "mayfly_version") {
		t.Errorf("INFO: %q, %v", got, err)
	}
	for option, want := range map[string]string{"bind": "* -::*", "protected-mode": "no", "dir": "/data"} {
		if got := client.ConfigGet(ctx, option).Val()[option]; got != want {
			t.Errorf("%s is %q, want %q", option, got, want)
		}
	}
	locks, err := filepath.Glob(filepath.Join(b.graph, "vfs-containers/*/userdata/buildah-volumes/*/LOCK"))
	if err != nil || len(locks) != 1 {
		t.Fatalf("want a data folder on the volume, found %q, %v", locks, err)
	}
	if fi, err := os.Stat(locks[0]); err != nil || fi.Sys().(*syscall.Stat_t).Uid != imageUser {
		t.Errorf("the server did not write as user %d: %v", imageUser, err)
	}
	stop()

	client, stop = b.serve(nil, container, "--appendfsync", "always")
	if got, err := client.Do(ctx, "DOC.GET", "0", "tea").Text(); err != nil || got != `{"green":true}` {
		t.Errorf("after a restart: %q, %v", got, err)
	}
	stop()

	if out := b.run("run", container, "--", "/usr/bin/mayfly", "check", "/data"); !strings.Contains(out, "sound") {
		t.Errorf("check in the container says %s", out)
	}
	b.serveTests(container)
}

// serveTests runs the server of a container for tests of programs, twice: its data is in memory, a year
// passes in no time, and nothing is left.
func (b *builder) serveTests(container string) {
	b.t.Helper()
	ctx := b.t.Context()
	for range 2 {
		client, stop := b.serve([]string{"--mount", "type=tmpfs,destination=/tmp"}, container, "--ephemeral", "yes", "--clock", "manual")
		if n, err := client.DBSize(ctx).Result(); n != 0 || err != nil {
			b.t.Errorf("a server for tests begins with %d items, %v", n, err)
		}
		if dir := client.ConfigGet(ctx, "dir").Val()["dir"]; !strings.HasPrefix(dir, "/tmp/") {
			b.t.Errorf("the data of a server for tests is in %s", dir)
		}
		drill.Report(b.t, client.Do(ctx, "SET", "session", "x", "EX", 31536000).Err())
		now, err := client.Do(ctx, "CLOCK", "NOW").Int64()
		drill.Report(b.t, err)
		if got, err := client.Do(ctx, "CLOCK", "ADVANCE", 31536000).Int64(); got != now+31536000_000 || err != nil {
			b.t.Errorf("a year after %d it is %d, %v", now, got, err)
		}
		if err := client.Get(ctx, "session").Err(); err != redis.Nil {
			b.t.Errorf("a year later: %v", err)
		}
		drill.Report(b.t, client.Set(ctx, "left", "x", 0).Err())
		stop()
	}
}

// checkImageFiles checks that an image consists of the binary, the licenses and an empty folder, and that its
// user can write only to the folder: so the root may be read-only.
func checkImageFiles(t *testing.T, root string) {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, root)
		fi, err := d.Info()
		if err != nil {
			return err
		}
		owner := fi.Sys().(*syscall.Stat_t).Uid
		if writable := owner == imageUser || fi.Mode()&0o022 != 0; writable != (name == "/data") {
			t.Errorf("%q has mode %v and owner %d", name, fi.Mode(), owner)
		}
		if name == "/data" && fi.Mode().Perm() != 0o700 {
			t.Errorf("other users may look into /data: its mode is %v", fi.Mode())
		}
		files = append(files, name)
		return nil
	})
	want := []string{"", "/data", "/usr", "/usr/bin", "/usr/bin/mayfly",
		"/usr/share", "/usr/share/doc", "/usr/share/doc/mayfly", "/usr/share/doc/mayfly/licenses"}
	if err != nil || !slices.Equal(files, want) {
		t.Errorf("the image has the files %q (%v), want %q", files, err, want)
	}
}
