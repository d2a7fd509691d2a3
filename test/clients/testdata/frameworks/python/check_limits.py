"""limits: the fixed window limits and opens again. Its moving window needs lists."""

import time

import redis
from limits import parse
from limits.storage import storage_from_string
from limits.strategies import FixedWindowElasticExpiryRateLimiter, FixedWindowRateLimiter, MovingWindowRateLimiter

from common import raises, until, url

storage = storage_from_string(url)
assert storage.check()
for strategy in FixedWindowRateLimiter, FixedWindowElasticExpiryRateLimiter:
    limiter, name = strategy(storage), strategy.__name__
    three = parse("3/hour")
    assert [limiter.hit(three, name, "ann") for _ in range(4)] == [True, True, True, False]
    assert limiter.hit(three, name, "bob")
    assert limiter.test(three, name, "bob") and not limiter.test(three, name, "ann")
    reset, remaining = limiter.get_window_stats(three, name, "bob")
    assert remaining == 2 and time.time() < reset <= time.time() + 3601
    limiter.clear(three, name, "ann")
    assert limiter.hit(three, name, "ann")

    one = parse("1/second")
    assert limiter.hit(one, name, "eve")
    until("the limiter opens", lambda: limiter.test(one, name, "eve"))
    assert limiter.hit(one, name, "eve")
assert storage.reset() > 0
err = raises(redis.ResponseError, MovingWindowRateLimiter(storage).hit, parse("1/second"), "ann")
assert "nknown" in str(err) and "command" in str(err), err
print("passed")
