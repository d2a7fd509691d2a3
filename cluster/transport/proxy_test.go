package transport

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"mayfly/test/drill"

	"go.etcd.io/raft/v3/raftpb"
)

// Nodes connect to each other themselves, although the environment has a proxy. Go reads that once in a
// process, so the nodes are in one of their own.
func TestNoProxy(t *testing.T) {
	t.Parallel()
	const marked = "MAYFLY_TEST_PROXY"
	if os.Getenv(marked) != "" {
		for _, credentials := range []*Credentials{nil, secret(t, someSecret)} {
			l, logs := listen(t, credentials, nil)
			n := begin(t, l, logs, testCluster, 1)
			n.Add(2, "node.invalid:7001") // no such host
			until(t, "the node is dialled", func() bool {
				n.Send([]*raftpb.Message{message(1, 2, raftpb.MsgHeartbeat, "")})
				n.mu.Lock()
				defer n.mu.Unlock()
				return n.unreachable > 0
			})
			n.Transport.Close() // no more of its dials
		}
		request, err := http.NewRequest(http.MethodGet, "http://node.invalid", nil)
		drill.Check(t, err)
		if proxy, err := http.ProxyFromEnvironment(request); proxy != nil || err != nil {
			t.Errorf("the proxy %s is used: %v", proxy, err)
		}
		return
	}
	drill.Slow(t)
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	drill.Check(t, err)
	defer proxy.Close()
	asked := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := proxy.Accept()
			if err != nil {
				return
			}
			conn.Close()
			asked <- struct{}{}
		}
	}()
	for _, variables := range []string{"HTTP_PROXY HTTPS_PROXY", "http_proxy https_proxy"} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoProxy$")
		cmd.Env = append(os.Environ(), marked+"=1", "NO_PROXY=", "no_proxy=")
		for _, v := range strings.Fields(variables) {
			cmd.Env = append(cmd.Env, v+"=http://"+proxy.Addr().String())
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", variables, err, out)
		}
	}
	if len(asked) > 0 {
		t.Errorf("the proxy gets %d connections", len(asked))
	}
}
