"""limits: fixed and moving windows limit and open again."""

import time

from limits import parse
from limits.storage import storage_from_string
from limits.strategies import FixedWindowElasticExpiryRateLimiter, FixedWindowRateLimiter, MovingWindowRateLimiter

from common import until, url

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
limiter, two = MovingWindowRateLimiter(storage), parse("2/second")
assert [limiter.hit(two, "ann") for _ in range(3)] == [True, True, False]
until("the window moves on", lambda: limiter.test(two, "ann"))
assert limiter.hit(two, "ann")
assert storage.reset() > 0
print("passed")
