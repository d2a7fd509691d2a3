"""dogpile.cache: a region hits, misses, expires, and makes a value once under its lock."""

import threading
import time

from dogpile.cache import make_region
from dogpile.cache.api import NO_VALUE

from common import connect, exclusive, port, until

r = connect()


def region_of(**arguments):
    return make_region().configure("dogpile.cache.redis", arguments={"port": port, "distributed_lock": True, "thread_local_lock": False, **arguments})


region = region_of(redis_expiration_time=60, lock_timeout=30, lock_sleep=0.005)
assert region.get("k") is NO_VALUE
region.set("k", {"n": 1})
assert region.get("k") == {"n": 1}
assert 30 < r.ttl("k") <= 60
region.set_multi({"a": 1, "b": 2})
assert region.get_multi(["a", "none", "b"]) == [1, NO_VALUE, 2]
region.delete("a")
region.delete_multi(["b"])
assert region.get("a") is NO_VALUE and region.get("b") is NO_VALUE

calls = []


def make():
    calls.append(1)
    time.sleep(0.05)
    return len(calls)


threads = [threading.Thread(target=region.get_or_create, args=("made", make)) for _ in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert region.get("made") == 1 and calls == [1], calls
assert r.keys("_lock*") == []

brief = region_of(redis_expiration_time=1)
brief.set("brief", 1)
until("the value expires", lambda: brief.get("brief") is NO_VALUE)


def enter():
    mutex = region.backend.get_mutex("busy")
    mutex.acquire()
    return mutex.release


exclusive(enter)
print("passed")
