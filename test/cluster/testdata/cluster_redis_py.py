"""A program that uses redis-py with a cluster and with Sentinel, and changes nothing when the leader does.

Arguments: milliseconds between two writes, host:port of each node. Both clients write a number and read it back. Each time it
prints which of them, cluster or sentinel, and the number, or the error, until its input ends.
"""
import sys
import threading

import redis
from redis.cluster import ClusterNode, RedisCluster
from redis.sentinel import Sentinel

# redis-py 4.3 copies the options of its connections, one of which is a method of the client; the copy fails. Later versions do
# not copy it.
RedisCluster.__deepcopy__ = lambda self, memo: self

nodes = [(host, int(port)) for host, port in (a.rsplit(":", 1) for a in sys.argv[2:])]
pause = int(sys.argv[1]) / 1000
ended = threading.Event()


def work(kind, r):
    n = 0
    while not ended.wait(pause):
        n += 1
        try:
            r.set("python-" + kind, n)
            got = int(r.get("python-" + kind))
            said = f"ok {n}" if got == n else f"wrong {n} is {got}"
        except Exception as e:  # RedisClusterException is no RedisError
            said = f"error {type(e).__name__}: {e}".replace("\n", " ")
        sys.stdout.write(f"{kind} {said}\n")  # at once: lines of two threads do not mix
        sys.stdout.flush()


threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
clients = {
    "cluster": RedisCluster(startup_nodes=[ClusterNode(host, port) for host, port in nodes], socket_timeout=5),
    "sentinel": Sentinel(nodes, socket_timeout=1).master_for("mymaster", socket_timeout=5),
}
for kind, client in clients.items():
    threading.Thread(target=work, args=(kind, client)).start()
