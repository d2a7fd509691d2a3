// Limiters of rate-limiter-flexible, with node-redis and ioredis: they limit, block, give back and open again.
import Redis from "ioredis";
import { BurstyRateLimiter, RateLimiterRedis, RateLimiterRedisNonAtomic } from "rate-limiter-flexible";
import { assert, connect, port, until } from "./common.mjs";

const clients = {
  ioredis: { storeClient: new Redis(port, "127.0.0.1") },
  "node-redis": { storeClient: await connect(), useRedisPackage: true },
};
for (const [name, client] of Object.entries(clients)) {
  const limiter = new RateLimiterRedis({ ...client, keyPrefix: name, points: 3, duration: 60 });
  for (const remaining of [2, 1, 0]) {
    const got = await limiter.consume("ann");
    assert.equal(got.remainingPoints, remaining);
    assert.ok(got.msBeforeNext > 0 && got.msBeforeNext <= 60_000, `${got.msBeforeNext} ms`);
  }
  const refused = await limiter.consume("ann").then(() => assert.fail("consumed"), (r) => r);
  assert.equal(refused.remainingPoints, 0);
  assert.equal((await limiter.consume("bob")).remainingPoints, 2);
  const brief = new RateLimiterRedis({ ...client, keyPrefix: name + ":brief", points: 1, duration: 1 });
  await brief.consume("joe");
  await until("the limiter opens", () => brief.consume("joe").catch(() => false));

  const slow = new RateLimiterRedis({ ...client, keyPrefix: name + ":a", points: 3, duration: 60 });
  await slow.penalty("eve", 2);
  assert.equal((await slow.reward("eve", 1)).consumedPoints, 1);
  assert.equal((await slow.get("eve")).consumedPoints, 1);
  assert.equal(await slow.get("nobody"), null);
  assert.equal(await slow.delete("eve"), true);
  assert.equal(await slow.get("eve"), null);

  const blocking = new RateLimiterRedis({ ...client, keyPrefix: name + ":b", points: 1, duration: 60, blockDuration: 600 });
  await blocking.consume("ann");
  const blocked = await blocking.consume("ann").then(() => assert.fail("consumed"), (r) => r);
  assert.ok(blocked.msBeforeNext > 60_000, `blocked for ${blocked.msBeforeNext} ms`);

  const bursty = new BurstyRateLimiter(
    new RateLimiterRedis({ ...client, keyPrefix: name + ":c", points: 1, duration: 60 }),
    new RateLimiterRedis({ ...client, keyPrefix: name + ":d", points: 1, duration: 60 }),
  );
  await bursty.consume("ann");
  await bursty.consume("ann");
  await bursty.consume("ann").then(() => assert.fail("consumed"), (r) => assert.equal(r.remainingPoints, 0));
}
if (RateLimiterRedisNonAtomic) {
  const limiter = new RateLimiterRedisNonAtomic({ ...clients.ioredis, keyPrefix: "plain", points: 1, duration: 60 });
  await limiter.consume("ann");
  await limiter.consume("ann").then(() => assert.fail("consumed"), (r) => assert.equal(r.remainingPoints, 0));
}
