"""django-redis: Django's cache, its locks, and sessions in the cache."""

import django
from django.conf import settings

from common import connect, exclusive, raises, until, url

settings.configure(
    CACHES={"default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": url, "OPTIONS": {"CLIENT_CLASS": "django_redis.client.DefaultClient"}}},
    SESSION_ENGINE="django.contrib.sessions.backends.cache",
    INSTALLED_APPS=["django.contrib.sessions"],
)
django.setup()

from django.contrib.sessions.backends.cache import SessionStore  # noqa: E402, after setup
from django.core.cache import cache  # noqa: E402
from redis.exceptions import LockError  # noqa: E402

# a cache
assert cache.get("k") is None and cache.get("k", 7) == 7
cache.set("k", {"n": [1, "é"]}, timeout=60)
assert cache.get("k") == {"n": [1, "é"]}
assert 30 < cache.ttl("k") <= 60
assert not cache.add("k", 1) and cache.add("new", 1)
assert cache.incr("new", 4) == 5 and cache.decr("new") == 4
raises(ValueError, cache.incr, "none")
cache.set("brief", 1, timeout=1)
until("the entry expires", lambda: cache.get("brief") is None)
cache.set_many({"a": 1, "b": 2}, timeout=60)
assert cache.get_many(["a", "b", "none"]) == {"a": 1, "b": 2}
assert cache.get_or_set("c", lambda: 3, timeout=60) == 3
assert cache.touch("a", 600) and cache.ttl("a") > 500
assert cache.persist("a") and cache.ttl("a") is None
assert sorted(cache.keys("?")) == ["a", "b", "c", "k"]
assert sorted(cache.iter_keys("?")) == ["a", "b", "c", "k"]
cache.delete_many(["a", "b"])
assert not cache.has_key("a")
cache.set("v", 1, version=1)
cache.incr_version("v")
assert cache.get("v", version=2) == 1 and cache.get("v", version=1) is None
assert cache.delete_pattern("[ck]") == 2

# a lock
mine = cache.lock("lock", timeout=30)
assert mine.acquire(blocking=False)
assert not cache.lock("lock", timeout=30).acquire(blocking=False)
mine.release()
raises(LockError, mine.release)


def enter():
    lock = cache.lock("busy", timeout=30, sleep=0.005, blocking_timeout=30, thread_local=False)
    assert lock.acquire()
    return lock.release


exclusive(enter)

# sessions
session = SessionStore()
session["user"] = "ann"
session.set_expiry(60)
session.save()
again = SessionStore(session.session_key)
assert again["user"] == "ann"
again.set_expiry(1)
again.save()
until("the session expires", lambda: not SessionStore().exists(session.session_key))
session.save(must_create=True)
session.flush()
assert session.session_key is None

cache.clear()
assert connect().dbsize() == 0
print("passed")
