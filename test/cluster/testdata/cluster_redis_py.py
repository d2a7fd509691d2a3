"""A program that uses redis-py with a cluster, and changes nothing when the leader does.

Arguments: cluster or sentinel, and host:port of each node. It increments a number, writes it and reads it back; it prints the
number each time, or the error, until its input ends.
"""
import sys
import threading

import redis
from redis.cluster import ClusterNode, RedisCluster
from redis.sentinel import Sentinel

# redis-py 4.3 copies the options of its connections, one of which is a method of the client; the copy fails. Later versions do
# not copy it.
RedisCluster.__deepcopy__ = lambda self, memo: self

kind, addresses = sys.argv[1], [a.rsplit(":", 1) for a in sys.argv[2:]]
if kind == "cluster":
    r = RedisCluster(startup_nodes=[ClusterNode(host, int(port)) for host, port in addresses], socket_timeout=5)
else:
    r = Sentinel([(host, int(port)) for host, port in addresses], socket_timeout=1).master_for("mymaster", socket_timeout=5)

ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
n = 0
while not ended.wait(0.02):
    n += 1
    try:
        r.set("python-" + kind, n)
        got = int(r.get("python-" + kind))
        print(f"ok {n}" if got == n else f"wrong {n} is {got}", flush=True)
    except Exception as e:  # RedisClusterException is no RedisError
        print(f"error {type(e).__name__}: {e}".replace("\n", " "), flush=True)
