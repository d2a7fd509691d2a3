"""redis-py: its Lock, its scripts, its JSON methods, a cache with TTL, messages."""

import redis
from redis.exceptions import LockError, LockNotOwnedError

from common import connect, exclusive, raises, until

r = connect(decode_responses=True)

# a lock is exclusive, is released by its owner only, is extended, expires
mine = r.lock("lock:a", timeout=30)
assert mine.acquire(blocking=False)
theirs = r.lock("lock:a", timeout=30)
assert not theirs.acquire(blocking=False)
raises(LockError, theirs.release)
theirs.local.token = b"another"
raises(LockNotOwnedError, theirs.release)
assert mine.owned() and theirs.locked() and not theirs.owned()
mine.extend(30)
assert 30 < r.ttl("lock:a") <= 60
mine.reacquire()
assert 0 < r.ttl("lock:a") <= 30
mine.release()
assert not mine.locked()

late = r.lock("lock:a", timeout=0.2)
assert late.acquire(blocking=False)
following = r.lock("lock:a", timeout=30, sleep=0.01)
assert following.acquire(blocking_timeout=30)
raises(LockNotOwnedError, late.reacquire)
raises(LockNotOwnedError, late.release)
following.release()


def enter():
    lock = r.lock("lock:b", timeout=30, sleep=0.005, thread_local=False)
    assert lock.acquire(blocking_timeout=30)
    return lock.release


exclusive(enter)

# scripts: alone, after their removal from the server, in a pipeline
add = r.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
assert add(keys=["n"], args=[2]) == 2
r.script_flush()
assert add(keys=["n"], args=[3]) == 5
with r.pipeline() as pipe:
    r.script_flush()
    add(keys=["n"], args=[1], client=pipe)
    pipe.get("n")
    assert pipe.execute() == [6, "6"]
r.set("text", "x")
raises(redis.ResponseError, add, keys=["text"], args=[1])

# JSON
r.json().set("album", "$", {"title": "Low", "year": 1977, "tags": ["a"]})
assert r.json().get("album", "$.year") == [1977]
assert r.json().numincrby("album", "$.year", 1) == [1978]
assert r.json().arrappend("album", "$.tags", "b") == [2]
assert r.json().get("album") == {"title": "Low", "year": 1978, "tags": ["a", "b"]}
r.expire("album", 100)
assert 70 < r.ttl("album") <= 100

# a cache
assert r.get("cache") is None
r.set("cache", "v", ex=60)
assert r.get("cache") == "v"
r.set("cache", "v", px=1)
until("the key expires", lambda: r.get("cache") is None)

# messages
messages = r.pubsub(ignore_subscribe_messages=True)
messages.subscribe("news")
until("there is a subscriber", lambda: r.publish("news", "hello") == 1)
assert until("a message", lambda: messages.get_message(timeout=1))["data"] == "hello"
print("passed")
