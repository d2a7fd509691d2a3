package clients

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// TestRedisPy runs redis_py.py: redis-py is what programs in Python use.
func TestRedisPy(t *testing.T) {
	harness.Parallel(t)
	runScript(t, exec.Command(harness.Python(t), "test/clients/testdata/redis_py.py"))
}

// TestRedisPyCache runs redis_py_cache.py with a redis-py that has a cache.
func TestRedisPyCache(t *testing.T) {
	harness.Parallel(t)
	python, modules := harness.CachingRedisPy(t)
	program := exec.Command(python, "test/clients/testdata/redis_py_cache.py")
	program.Env = append(program.Environ(), "PYTHONPATH="+modules)
	runScript(t, program)
}

// TestIoredis runs ioredis.js: ioredis is one of the two that programs in Node.js use.
func TestIoredis(t *testing.T) {
	harness.Parallel(t)
	runInNode(t, "test/clients/testdata/ioredis.js", "ioredis", harness.IoredisVersions)
}

// nodeRedisVersions are the versions of node-redis that tests run: the last of version 4, which knows RESP2
// only, the last of version 5, and the newest.
var nodeRedisVersions = []string{"4.7.1", "5.12.1", "6.3.1"}

// TestNodeRedis runs node_redis.js: node-redis is the other. Its package is called redis.
func TestNodeRedis(t *testing.T) {
	harness.Parallel(t)
	runInNode(t, "test/clients/testdata/node_redis.js", "redis", nodeRedisVersions)
}

// tested returns the newest of the versions of a library; as a drill all of them.
func tested(versions []string) []string {
	newest := versions[len(versions)-1:]
	return drill.Pick(newest, newest, versions)
}

// runInNode runs a script with versions of a library.
func runInNode(t *testing.T, script, library string, versions []string) {
	for _, version := range tested(versions) {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			node, modules := harness.InstallInNode(t, library, version)
			program := exec.Command(node, script)
			program.Env = append(program.Environ(), "NODE_PATH="+modules)
			runScript(t, program)
		})
	}
}

// runScript runs a program with the port of a fresh server as one more argument. It ends with exit code 0 and
// the word passed if all is well.
func runScript(t *testing.T, program *exec.Cmd) {
	t.Helper()
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--requirepass", "secret")
	program.Args = append(program.Args, p.Port)
	out, err := program.CombinedOutput()
	if err != nil || !bytes.HasSuffix(bytes.TrimSpace(out), []byte("passed")) {
		t.Errorf("%q: %v\n%s", program.Args, err, out)
	}
}
