"""channels_redis: messages reach a channel in their order, a group all of its channels; a full channel refuses."""

import asyncio

from channels.exceptions import ChannelFull
from channels_redis.core import RedisChannelLayer

from common import url


async def check():
    layer = RedisChannelLayer(hosts=[url], capacity=5)
    waiting = asyncio.ensure_future(layer.receive("late"))
    await asyncio.sleep(0)
    for n in range(3):
        await layer.send("jobs", {"type": "job", "n": n})
    assert [(await layer.receive("jobs"))["n"] for _ in range(3)] == [0, 1, 2]
    await layer.send("late", {"type": "job", "n": 9})
    assert (await waiting)["n"] == 9
    a, b = await layer.new_channel(), await layer.new_channel()
    await layer.group_add("room", a)
    await layer.group_add("room", b)
    await layer.group_send("room", {"type": "said", "text": "hello"})
    assert [(await layer.receive(c))["text"] for c in (a, b)] == ["hello", "hello"]
    await layer.group_discard("room", a)
    await layer.group_send("room", {"type": "said", "text": "again"})
    assert (await layer.receive(b))["text"] == "again"
    for n in range(5):
        await layer.send("full", {"type": "job", "n": n})
    try:
        await layer.send("full", {"type": "job"})
        raise AssertionError("a full channel takes more")
    except ChannelFull:
        pass
    await layer.flush()
    await layer.close_pools()


asyncio.run(check())
print("passed")
