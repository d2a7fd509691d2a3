package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// TestRedisPy runs testdata/redis_py.py: redis-py is what programs in Python use.
func TestRedisPy(t *testing.T) {
	runScript(t, python(t), "testdata/redis_py.py")
}

// ioredisVersions are what is tested: the last of the line that most programs use, and the newest.
var ioredisVersions = []string{"5.11.1", "6.0.0"}

// TestIoredis runs testdata/ioredis.js: ioredis is one of the two that programs in Node.js use.
func TestIoredis(t *testing.T) { runInNode(t, "testdata/ioredis.js", "ioredis", ioredisVersions) }

// nodeRedisVersions are what is tested of node-redis: the last of version 4, which knows RESP2 only, of
// version 5, and the newest.
var nodeRedisVersions = []string{"4.7.1", "5.12.1", "6.3.1"}

// TestNodeRedis runs testdata/node_redis.js: node-redis is the other. Its package is called redis.
func TestNodeRedis(t *testing.T) { runInNode(t, "testdata/node_redis.js", "redis", nodeRedisVersions) }

// runInNode runs a script with each of the versions of a library.
func runInNode(t *testing.T, script, library string, versions []string) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			node, modules := installInNode(t, library, version)
			t.Setenv("NODE_PATH", modules)
			runScript(t, node, script)
		})
	}
}

// installedInNode protects the cache folder of installInNode.
var installedInNode sync.Mutex

// installInNode returns the path of Node.js and the folder of a version of a library. npm installs that into the user's
// cache folder, once.
func installInNode(t *testing.T, library, version string) (node, modules string) {
	t.Helper()
	installedInNode.Lock()
	defer installedInNode.Unlock()
	node, npm := need(t, "node"), need(t, "npm")
	cache, err := os.UserCacheDir()
	if err != nil {
		absent(t, "no folder to install %s into: %v", library, err)
	}
	dir := filepath.Join(cache, "mayfly-tests", library+"-"+version)
	modules = filepath.Join(dir, "node_modules")
	if exec.Command(node, "-e", `require(process.argv[1])`, filepath.Join(modules, library)).Run() != nil {
		out, err := exec.Command(npm, "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", library+"@"+version).CombinedOutput()
		if err != nil {
			absent(t, "npm cannot install %s: %v\n%s", library, err, out)
		}
	}
	return node, modules
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
