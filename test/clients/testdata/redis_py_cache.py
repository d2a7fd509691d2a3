"""Uses a mayfly on the port given as argument through the client-side cache of redis-py."""

import sys
import time

import redis
from redis.cache import CacheConfig


class WithDocuments(CacheConfig):
    DEFAULT_ALLOW_LIST = CacheConfig.DEFAULT_ALLOW_LIST + ["DOC.GET"]


def connect(**options):
    return redis.Redis(port=int(sys.argv[1]), password="secret", protocol=3, decode_responses=True, **options)


def eventually(read, want):
    """Waits until a read through the cache returns what is wanted, and has it return that once more."""
    end = time.monotonic() + 30
    while (got := read()) != want:
        assert time.monotonic() < end, f"the cache has {got!r}, not {want!r}"
        time.sleep(0.01)
    assert read() == want


other = connect()
cached = connect(cache_config=WithDocuments(), client_name="caching")
call = other.execute_command


def value(want):
    eventually(lambda: cached.get("k"), want)


# Keys: changes, deaths, reads of several, JSON.
other.set("k", "1")
value("1")
other.set("k", "2")
value("2")
other.set("k", "3", px=50)
value(None)
other.mset({"k": "4", "more": "5"})
eventually(lambda: cached.mget("k", "more"), ["4", "5"])
other.set("more", "6")
eventually(lambda: cached.mget("k", "more"), ["4", "6"])
other.json().set("document", "$", {"n": 1})
eventually(lambda: cached.json().get("document"), {"n": 1})
other.json().numincrby("document", "$.n", 1)
eventually(lambda: cached.json().get("document"), {"n": 2})

# Documents, by each of the names that they are told by.
for name in ["7", "orders", "orders/7"]:
    def document(want):
        eventually(lambda: cached.execute_command("DOC.GET", "orders", "7", keys=[name]), want)

    call("CONTAINER.SET", "orders", "TTL", "-1")
    call("DOC.PUT", "orders", "7", '{"n":1}')
    document('{"n":1}')
    call("DOC.PUT", "orders", "7", '{"n":2}')
    document('{"n":2}')
    call("DOC.PUT", "orders", "7", '{"ttl":1}')
    document(None)
    call("DOC.PUT", "orders", "7", '{"n":3}')
    document('{"n":3}')
    call("CONTAINER.SET", "orders", "TTL", "1")
    document(None)
    call("CONTAINER.UNDO", "orders")
    document('{"n":3}')
    with other.pipeline() as both:  # redis-py waits for ever after the error of a container that there is not
        both.execute_command("CONTAINER.DROP", "orders")
        both.execute_command("CONTAINER.CREATE", "orders")
        both.execute()
    document(None)

# Whole databases, and several at a time.
value("4")
second = connect(cache_config=CacheConfig(), db=1)
eventually(lambda: second.get("k"), None)
call("SWAPDB", 0, 1)
value(None)
eventually(lambda: second.get("k"), "4")
call("SWAPDB", 0, 1)
value("4")
eventually(lambda: second.get("k"), None)
other.flushdb()
value(None)

# A connection that breaks.
other.set("k", "7")
value("7")
assert call("CLIENT", "KILL", "NAME", "caching") >= 1
other.set("k", "8")
value("8")
other.set("k", "9")
value("9")

# What does not change is read once.
call("CONFIG", "RESETSTAT")
for _ in range(10):
    value("9")
reads = other.info("commandstats").get("cmdstat_get", {"calls": 0})["calls"]
assert reads <= 1, f"{reads} reads of a key that does not change"
print("passed")
