// The store of express-rate-limit: counts, refuses, gives back, resets and opens again.
import http from "node:http";
import { rateLimit } from "express-rate-limit";
import { RedisStore } from "rate-limit-redis";
import { assert, connect, until } from "./common.mjs";

const client = await connect();

/** Returns a store, and the middleware that allows two requests in a time. */
function limit(windowMs, prefix) {
  const store = new RedisStore({ prefix, sendCommand: (...args) => client.sendCommand(args) });
  const middleware = rateLimit({
    store, windowMs, limit: 2, keyGenerator: (req) => req.headers.user, validate: false, handler: (req, res) => {
      res.statusCode = 429;
      res.end();
    },
  });
  return { store, middleware };
}

const { store, middleware } = limit(60_000, "long:"), brief = limit(500, "brief:");
const server = http.createServer((req, res) => {
  res.status = (code) => ((res.statusCode = code), res);
  (req.url === "/brief" ? brief.middleware : middleware)(req, res, () => res.end());
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const visit = async (user, path = "/") => (await fetch(`http://127.0.0.1:${server.address().port}${path}`, { headers: { user } })).status;

assert.deepEqual([await visit("ann"), await visit("ann"), await visit("ann"), await visit("bob")], [200, 200, 429, 200]);
const { totalHits, resetTime } = await store.get("bob");
assert.equal(totalHits, 1);
assert.ok(resetTime > Date.now() && resetTime <= Date.now() + 60_000);
await until("the limiter refuses", async () => (await visit("joe", "/brief")) === 429);
await until("the limiter opens", async () => (await visit("joe", "/brief")) === 200);
await store.increment("eve");
await store.decrement("eve");
assert.equal((await store.increment("eve")).totalHits, 1);
await store.resetKey("eve");
assert.equal((await store.increment("eve")).totalHits, 1);
