package clients

import (
	"bytes"
	"mayfly/test/harness"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestRedisPy runs redis_py.py: redis-py is what programs in Python use.
func TestRedisPy(t *testing.T) {
	runScript(t, harness.Python(t), "test/clients/testdata/redis_py.py")
}

// TestIoredis runs ioredis.js: ioredis is one of the two that programs in Node.js use.
func TestIoredis(t *testing.T) {
	runInNode(t, "test/clients/testdata/ioredis.js", "ioredis", harness.IoredisVersions)
}

// nodeRedisVersions are what is tested of node-redis: the last of version 4, which knows RESP2 only, of
// version 5, and the newest.
var nodeRedisVersions = []string{"4.7.1", "5.12.1", "6.3.1"}

// TestNodeRedis runs node_redis.js: node-redis is the other. Its package is called redis.
func TestNodeRedis(t *testing.T) {
	runInNode(t, "test/clients/testdata/node_redis.js", "redis", nodeRedisVersions)
}

// runInNode runs a script with each of the versions of a library.
func runInNode(t *testing.T, script, library string, versions []string) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			node, modules := harness.InstallInNode(t, library, version)
			t.Setenv("NODE_PATH", modules)
			runScript(t, node, script)
		})
	}
}

// runScript runs a script with the port of a fresh server as its argument. It ends with exit code 0
// and the word passed if all is well.
func runScript(t *testing.T, interpreter, script string) {
	t.Helper()
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--requirepass", "secret")
	out, err := exec.CommandContext(t.Context(), interpreter, script, p.Port).CombinedOutput()
	if err != nil || !bytes.HasSuffix(bytes.TrimSpace(out), []byte("passed")) {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
}
