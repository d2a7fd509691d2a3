// A cache of cache-manager over @keyv/redis: hits, misses, wrapped functions, TTL.
import { createCache } from "cache-manager";
import Keyv from "keyv";
import KeyvRedis from "@keyv/redis";
import { assert, until, url } from "./common.mjs";

const cache = createCache({ stores: [new Keyv({ store: new KeyvRedis(url) })], ttl: 60_000 });
cache.on("set", ({ error }) => assert.equal(error, undefined));
cache.on("get", ({ error }) => assert.equal(error, undefined));

assert.equal(await cache.get("k"), undefined);
await cache.set("k", { n: 1 });
assert.deepEqual(await cache.get("k"), { n: 1 });
const left = (await cache.ttl("k")) - Date.now();
assert.ok(left > 30_000 && left <= 60_000, `${left} ms left`);

let calls = 0;
const wrapped = (key, ttl) => cache.wrap(key, async () => ++calls, ttl);
assert.equal(await wrapped("w", 60_000), 1);
assert.equal(await wrapped("w", 60_000), 1);
assert.equal(await wrapped("brief", 200), 2);
await until("the wrapped value expires", async () => (await wrapped("brief", 200)) > 2);

await cache.mset([{ key: "a", value: 1 }, { key: "b", value: 2 }]);
assert.deepEqual(await cache.mget(["a", "b", "none"]), [1, 2, undefined]);
await cache.del("a");
assert.equal(await cache.get("a"), undefined);
await cache.mdel(["b"]);
assert.equal(await cache.get("b"), undefined);
await cache.clear();
assert.equal(await cache.get("k"), undefined);
