// A cache of keyv: hits, misses, TTL, many keys, namespaces, iteration.
import Keyv from "keyv";
import KeyvRedis from "@keyv/redis";
import { assert, connect, until, url } from "./common.mjs";

const cache = new Keyv({ store: new KeyvRedis(url), namespace: "users" });
const others = new Keyv({ store: new KeyvRedis(url), namespace: "orders" });
for (const each of [cache, others]) each.on("error", (err) => assert.fail(err));

assert.equal(await cache.get("ann"), undefined);
assert.equal(await cache.set("ann", { age: 42 }), true);
assert.deepEqual(await cache.get("ann"), { age: 42 });
assert.equal(await cache.has("ann"), true);
assert.equal(await others.get("ann"), undefined);

await cache.set("brief", 1, 60_000);
assert.equal(await cache.get("brief"), 1);
const client = await connect();
const key = (await client.keys("*brief"))[0];
assert.ok((await client.pTTL(key)) > 0, "keyv hands its TTL on");
await cache.set("brief", 1, 1);
await until("the server removes what has expired", async () => (await client.exists(key)) === 0);
assert.equal(await cache.get("brief"), undefined);

await cache.setMany([{ key: "a", value: 1 }, { key: "b", value: 2, ttl: 60_000 }]);
assert.deepEqual(await cache.getMany(["a", "none", "b"]), [1, undefined, 2]);
assert.deepEqual(await cache.hasMany(["a", "none"]), [true, false]);
const found = [];
for await (const [name] of cache.iterator()) found.push(name);
assert.deepEqual(found.sort(), ["a", "ann", "b"]);
assert.equal(await cache.delete("a"), true);
assert.equal(await cache.delete("a"), false);

await others.set("one", 1);
await cache.clear();
assert.equal(await cache.get("b"), undefined);
assert.equal(await others.get("one"), 1, "clear spares other namespaces");
