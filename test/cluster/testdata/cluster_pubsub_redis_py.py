"""A program that subscribes with redis-py's client for clusters, and changes nothing when the leader does.

Arguments: host:port of each node. It prints each message until its input ends.
"""
import sys
import threading

import redis
from redis.cluster import ClusterNode, RedisCluster

addresses = [a.rsplit(":", 1) for a in sys.argv[1:]]
r = RedisCluster(startup_nodes=[ClusterNode(host, int(port)) for host, port in addresses], socket_timeout=5)
messages = r.pubsub()
messages.subscribe("news")

ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
while not ended.is_set():
    try:
        m = messages.get_message(timeout=0.1)
        if m and m["type"] == "message":
            print(m["data"].decode(), flush=True)
    except redis.ConnectionError:  # redis-py connects again, to the same node, at the next call
        ended.wait(0.05)
