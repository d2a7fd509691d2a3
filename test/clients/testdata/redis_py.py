"""Uses a mayfly on the port given as argument through redis-py, in the ways its users do."""

import json
import sys
import time

import redis

port = int(sys.argv[1])


def connect(**options):
    return redis.Redis(port=port, password="secret", **options)


def refused(kind, text, call, *args, **options):
    try:
        call(*args, **options)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"{args} was not refused")


r = connect(decode_responses=True, client_name="python")
assert r.ping() is True
assert r.client_getname() == "python"
assert any(c["name"] == "python" and c["id"] == str(r.client_id()) for c in r.client_list())
refused(redis.RedisError, "invalid username-password", redis.Redis(port=port, password="wrong").ping)
refused(redis.AuthenticationError, "Authentication required", redis.Redis(port=port).get, "k")

# Strings.
assert r.set("k", "v") is True
assert r.get("k") == "v"
assert r.get("nobody") is None
assert r.set("k", "w", nx=True) is None
assert r.set("nobody", "w", xx=True) is None
assert r.set("k", "w", get=True) == "v"
assert r.mset({"a": 1, "b": "ü"}) is True
assert r.mget("a", "nobody", "b") == ["1", None, "ü"]
assert r.msetnx({"a": 1, "c": 2}) is False
assert r.incr("a", 41) == 42 and r.decr("a") == 41
assert r.incrbyfloat("a", "0.5") == 41.5
assert r.append("b", "!") == 3 and r.strlen("b") == 3
assert r.getset("b", "x") == "ü!" and r.getdel("b") == "x" and r.getdel("b") is None
assert r.exists("a", "a", "b") == 2 and r.delete("a", "b") == 1 and r.unlink("a") == 0
assert r.type("k") == "string" and r.type("nobody") == "none"
raw = connect()
everything = bytes(range(256)) * 100
assert raw.set(b"\x00\xff", everything) and raw.get(b"\x00\xff") == everything

# Ends.
assert r.ttl("k") == -1 and r.ttl("nobody") == -2 and r.pttl("k") == -1
assert r.expire("k", 100) is True and 70 < r.ttl("k") <= 100
assert r.expire("k", 50, gt=True) is False and r.expire("k", 200, gt=True) is True
assert r.expire("k", 300, nx=True) is False and r.persist("k") is True and r.persist("k") is False
assert r.setex("k", 60, "v") and r.psetex("k", 60000, "v") and 30000 < r.pttl("k") <= 60000
assert r.set("k", "w", keepttl=True) and r.ttl("k") > 0
assert r.getex("k", ex=500) == "w" and 470 < r.ttl("k") <= 500
at = int(time.time()) + 1000
assert r.expireat("k", at) and r.expiretime("k") == at and r.pexpiretime("k") == at * 1000
assert r.set("k", "v", px=1)
for _ in range(3000):
    if r.get("k") is None:
        break
    time.sleep(0.01)
assert r.get("k") is None

# Keys, databases, pipelines.
r.flushall()
pipe = r.pipeline(transaction=False)
for n in range(1000):
    pipe.set(f"key:{n}", n)
pipe.incr("key:1").get("nobody").execute_command("NO.SUCH")
replies = pipe.execute(raise_on_error=False)
assert replies[:1000] == [True] * 1000 and replies[1000:1002] == [2, None]
assert isinstance(replies[1002], redis.ResponseError), replies[1002]
assert r.dbsize() == 1000
assert sorted(r.scan_iter(count=50)) == sorted(f"key:{n}" for n in range(1000))
assert sorted(r.scan_iter(match="key:99?")) == sorted(r.keys("key:99?")) and len(r.keys("key:99?")) == 10
assert r.randomkey().startswith("key:")
other = connect(db=5, decode_responses=True)
assert other.dbsize() == 0 and other.set("here", 1) and r.get("here") is None
assert r.info("keyspace")["db5"]["keys"] == 1
assert r.info()["loading"] == 0 and r.info("server")["redis_mode"] == "standalone"
assert r.config_get("appendfsync") == {"appendfsync": "everysec"} and r.config_set("timeout", 0) is True
assert r.command_count() == len(r.command()) and r.command()["get"]["arity"] == 2
assert r.flushdb() is True and r.dbsize() == 0 and other.dbsize() == 1

# Transactions.
assert r.pipeline().set("a", 1).incr("a").get("nobody").execute() == [True, 2, None]
with r.pipeline() as pipe:
    pipe.watch("a")
    r.set("a", "meanwhile")
    pipe.multi()
    pipe.set("a", "watched")
    refused(redis.WatchError, "", pipe.execute)
assert r.transaction(lambda pipe: pipe.multi() or pipe.set("a", "watched"), "a") == [True]
assert r.getdel("a") == "watched"

# Errors.
assert r.set("text", "abc")
refused(redis.ResponseError, "value is not an integer or out of range", r.incr, "text")
refused(redis.ResponseError, "unknown command 'PFADD'", r.pfadd, "a", "b")
refused(redis.ResponseError, "DB index is out of range", r.execute_command, "SELECT", 99)

# Containers and documents.
do = r.execute_command
assert do("CONTAINER.SET", "orders", "TTL", 3600) == "OK"
order = json.dumps({"item": "thé", "price": 1.5, "ttl": 60}, ensure_ascii=False)
assert do("DOC.PUT", "orders", "1", order) == "OK" and do("DOC.GET", "orders", "1") == order
assert do("DOC.PUT", "orders", "1", "{}", "NX") is None and 30 < do("DOC.TTL", "orders", "1") <= 60
assert do("DOC.MGET", "orders", "1", "2") == [order, None] and do("DOC.COUNT", "orders") == 1
described = do("CONTAINER.GET", "orders")
assert dict(zip(described[::2], described[1::2]))["ttl"] == "3600"
cursor, ids = do("DOC.SCAN", "orders", 0, "COUNT", 10)
assert cursor == "0" and ids == ["1"]
refused(redis.ResponseError, "legal are", do, "DOC.PUT", "orders", "1", '{"ttl":0}')
refused(redis.ResponseError, "unknown container", do, "DOC.GET", "nowhere", "1")
assert do("DOC.DEL", "orders", "1", "2") == 1 and do("CONTAINER.DROP", "orders") == 1

# Typed methods for JSON. A path of redis-py's own is legacy, one with $ answers with lists.
j = r.json()
tea = {"item": "thé", "price": 2, "tags": ["hot"], "stock": {"full": True, "n": None}}
assert j.set("tea", "$", tea) is True and j.get("tea") == tea and j.get("tea", "$.price", ".item") == {"$.price": [2], ".item": ["thé"]}
assert j.set("tea", "$", {}, nx=True) is None and j.set("none", "$", {}, xx=True) is None and j.get("none") is None
assert j.get("tea", ".item", no_escape=True) == "thé" and j.mget(["tea", "none"], "$.price") == [[2], None]
assert j.type("tea", "$.tags") == ["array"] and j.type("tea", ".stock.n") == "null" and j.type("none") is None
assert j.numincrby("tea", ".price", 0.5) == 2.5 and j.numincrby("tea", "$..price", 1) == [3.5] and j.nummultby("tea", "$.price", 2) == [7.0]
assert j.strappend("tea", " vert", ".item") == 9 and j.strlen("tea", "$.*") == [9, None, None, None]
assert j.arrappend("tea", "$.tags", "sweet", {"of": "Assam"}) == [3] and j.arrlen("tea", ".tags") == 3
assert j.arrindex("tea", ".tags", "sweet") == 1 and j.arrindex("tea", "$.tags", "none") == [-1]
assert j.arrinsert("tea", ".tags", 0, "new") == 4 and j.arrpop("tea", ".tags", 0) == "new" and j.arrpop("tea", ".tags") == {"of": "Assam"}
assert j.arrtrim("tea", "$.tags", 0, 0) == [1] and j.get("tea", ".tags") == ["hot"]
assert j.objkeys("tea", ".stock") == ["full", "n"] and j.objlen("tea") == 4 and j.objlen("tea", "$.tags") == [None]
assert j.toggle("tea", ".stock.full") is False and j.toggle("tea", "$.stock.*") == [1, None]
assert j.resp("tea", ".stock") == ["{", "full", "true", "n", None] and j.debug("MEMORY", "tea") > 0
assert j.clear("tea", "$.tags") == 1 and j.delete("tea", "$.stock") == 1 and j.forget("tea", "$.stock") == 0
assert j.get("tea") == {"item": "thé vert", "price": 7.0, "tags": []}
refused(redis.ResponseError, "does not exist", j.get, "tea", ".none")
assert r.set("plain", "v")
refused(redis.ResponseError, "wrong Redis type", j.get, "plain")
refused(redis.ResponseError, "doesn't exist", j.numincrby, "none", "$.a", 1)
pipe = j.pipeline()
pipe.set("tea", "$.price", 1).get("tea", "$.price")
pipe.numincrby("tea", "$.price", 1)
assert pipe.execute() == [True, [1], [2]]
assert r.type("tea") == "ReJSON-RL" and list(r.scan_iter(_type="ReJSON-RL")) == ["tea"] and r.expire("tea", 100) and 70 < r.ttl("tea") <= 100
assert j.delete("tea") == 1 and r.exists("tea") == 0

# The log of deaths is a stream.
stream = "__keyevent@gone__:expired"
assert r.execute_command("CONTAINER.CREATE", "gone", "TTL", 1, "LOG", 3600)
assert r.xlen(stream) == 0 and r.xrange(stream) == []
assert r.xgroup_create(stream, "g", "0") is True
refused(redis.ResponseError, "is written by the server", r.xadd, stream, {"a": 1})
r.execute_command("DOC.PUT", "gone", "1", '{"n":1}')
((name, entries),) = r.xread({stream: "0"}, block=30_000)
((entry, fields),) = entries
assert name == stream and fields["id"] == "1" and fields["doc"] == '{"n":1}' and fields["cause"] == "container"
assert r.xreadgroup("g", "w1", {stream: ">"}) == [[stream, [(entry, fields)]]]
assert r.xpending(stream, "g")["pending"] == 1 and r.xpending_range(stream, "g", "-", "+", 9)[0]["consumer"] == "w1"
assert r.xclaim(stream, "g", "w2", 0, [entry]) == [(entry, fields)]
assert r.xautoclaim(stream, "g", "w3", 0)[1] == [(entry, fields)]
claimed = r.execute_command("XREADGROUP", "GROUP", "g", "w4", "BLOCK", 30_000, "CLAIM", 20, "STREAMS", stream, ">")
assert list(claimed[stream] if isinstance(claimed, dict) else claimed[0][1])[0][0] == entry
assert r.xack(stream, "g", entry) == 1 and r.xinfo_groups(stream)[0]["pending"] == 0
assert r.xinfo_stream(stream)["length"] == 1 and len(r.xinfo_consumers(stream, "g")) == 4
assert r.xdel(stream, entry) == 1 and r.xtrim(stream, maxlen=0) == 0 and r.xgroup_destroy(stream, "g") == 1

print("passed")
