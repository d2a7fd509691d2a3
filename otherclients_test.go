package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestRedisPy runs testdata/redis_py.py: redis-py is what programs in Python use.
func TestRedisPy(t *testing.T) {
	for _, python := range []string{"/usr/bin/python3", "python3"} {
		if exec.Command(python, "-c", "import redis").Run() == nil {
			runScript(t, python, "testdata/redis_py.py")
			return
		}
	}
	absent(t, "no python3 knows the module redis (Debian: python3-redis)")
}

// ioredisVersions are what is tested: the last of the line that most programs use, and the newest.
var ioredisVersions = []string{"5.11.1", "6.0.0"}

// TestIoredis runs testdata/ioredis.js: ioredis is what programs in Node.js use. npm installs it
// into the user's cache folder, once.
func TestIoredis(t *testing.T) {
	node, npm := need(t, "node"), need(t, "npm")
	cache, err := os.UserCacheDir()
	if err != nil {
		absent(t, "no folder to install ioredis into: %v", err)
	}
	for _, version := range ioredisVersions {
		t.Run(version, func(t *testing.T) {
			dir := filepath.Join(cache, "mayfly-tests", "ioredis-"+version)
			modules := filepath.Join(dir, "node_modules")
			if exec.Command(node, "-e", `require(process.argv[1])`, filepath.Join(modules, "ioredis")).Run() != nil {
				out, err := exec.Command(npm, "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", "ioredis@"+version).CombinedOutput()
				if err != nil {
					absent(t, "npm cannot install ioredis: %v\n%s", err, out)
				}
			}
			t.Setenv("NODE_PATH", modules)
			runScript(t, node, "testdata/ioredis.js")
		})
	}
}

// runScript runs a script with the port of a fresh server as its argument. It ends with exit code 0
// and the word passed if all is well.
func runScript(t *testing.T, interpreter, script string) {
	t.Helper()
	p := start(t, filepath.Join(t.TempDir(), "data"), "--requirepass", "secret")
	out, err := exec.CommandContext(t.Context(), interpreter, script, p.port).CombinedOutput()
	if err != nil || !bytes.HasSuffix(bytes.TrimSpace(out), []byte("passed")) {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
}
