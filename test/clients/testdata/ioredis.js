// Uses a mayfly on the port given as argument through ioredis, in the ways its users do.

const assert = require("node:assert/strict");
const { Redis } = require("ioredis");

const options = { port: Number(process.argv[2]), password: "secret", retryStrategy: null, maxRetriesPerRequest: 0 };

async function main() {
  const redis = new Redis({ ...options, connectionName: "node", db: 4 });
  await new Promise((resolve, reject) => redis.once("ready", resolve).once("error", reject));
  assert.equal(await redis.ping(), "PONG");
  assert.equal(await redis.client("GETNAME"), "node");
  assert.match(await redis.client("LIST"), / name=node .* db=4 /);

  // Strings.
  assert.equal(await redis.set("k", "v"), "OK");
  assert.equal(await redis.get("k"), "v");
  assert.equal(await redis.get("nobody"), null);
  assert.equal(await redis.set("k", "w", "NX"), null);
  assert.equal(await redis.set("k", "w", "EX", 100, "GET"), "v");
  assert.ok((await redis.ttl("k")) > 70);
  assert.equal(await redis.mset({ a: 1, b: "ü" }), "OK");
  assert.deepEqual(await redis.mget("a", "nobody", "b"), ["1", null, "ü"]);
  assert.equal(await redis.incrby("a", 41), 42);
  assert.equal(await redis.incrbyfloat("a", 0.5), "42.5");
  assert.equal(await redis.getdel("b"), "ü");
  assert.equal(await redis.del("a", "b"), 1);
  const everything = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
  await redis.set(everything, everything);
  assert.deepEqual(await redis.getBuffer(everything), everything);

  // Ends.
  assert.equal(await redis.pexpire("k", 50000), 1);
  assert.equal(await redis.expire("k", 10, "GT"), 0);
  assert.equal(await redis.persist("k"), 1);
  assert.equal(await redis.pttl("k"), -1);
  assert.equal(await redis.ttl("nobody"), -2);

  // Keys and pipelines.
  assert.equal(await redis.flushdb(), "OK");
  const pipeline = redis.pipeline();
  for (let n = 0; n < 1000; n++) pipeline.set(`key:${n}`, n);
  pipeline.incr("key:1").get("nobody").call("NO.SUCH");
  const replies = await pipeline.exec();
  assert.deepEqual(replies.slice(1000, 1002), [[null, 2], [null, null]]);
  assert.match(replies[1002][0].message, /^ERR unknown command 'NO\.SUCH'/);
  assert.equal(await redis.dbsize(), 1000);
  const found = new Set();
  for await (const keys of redis.scanStream({ match: "key:*", count: 100 })) {
    for (const key of keys) found.add(key);
  }
  assert.equal(found.size, 1000);
  const gathered = new Redis({ ...options, db: 4, enableAutoPipelining: true, keyPrefix: "key:" });
  const values = await Promise.all(Array.from({ length: 100 }, (_, n) => gathered.get(n + 100)));
  assert.deepEqual(values, Array.from({ length: 100 }, (_, n) => String(n + 100)));

  // Transactions.
  assert.deepEqual(await redis.multi().set("a", 1).incr("a").get("nobody").exec(), [[null, "OK"], [null, 2], [null, null]]);
  await redis.watch("a");
  await gathered.set("a", "not watched"); // key:a
  await redis.set("a", "meanwhile");
  assert.equal(await redis.multi().set("a", "watched").exec(), null);
  assert.equal(await redis.getdel("a"), "meanwhile");
  await assert.rejects(redis.multi().set("a", 1).call("NO.SUCH").exec(), /EXECABORT/);

  // Errors.
  await redis.set("text", "abc");
  await assert.rejects(redis.incr("text"), /^ReplyError: ERR value is not an integer or out of range$/);
  await assert.rejects(redis.pfadd("a", "b"), /unknown command 'pfadd'/i);
  const stranger = new Redis({ ...options, password: "wrong", lazyConnect: true });
  stranger.on("error", () => {}); // told by the promise, too
  await assert.rejects(stranger.connect());
  stranger.disconnect();

  // Containers and documents.
  assert.equal(await redis.call("CONTAINER.SET", "orders", "TTL", 3600), "OK");
  const order = JSON.stringify({ item: "thé", price: 1.5, ttl: 60 });
  assert.equal(await redis.call("DOC.PUT", "orders", "1", order), "OK");
  assert.equal(await redis.call("DOC.GET", "orders", "1"), order);
  assert.ok((await redis.call("DOC.TTL", "orders", "1")) > 30);
  assert.equal(await redis.call("DOC.PUT", "orders", "1", "{}", "NX"), null);
  assert.deepEqual(await redis.call("DOC.MGET", "orders", "1", "2"), [order, null]);
  assert.deepEqual(await redis.call("DOC.SCAN", "orders", "0"), ["0", ["1"]]);
  await assert.rejects(redis.call("DOC.PUT", "orders", "1", '{"ttl":0}'), /invalid ttl 0: legal are/);
  assert.equal(await redis.call("CONTAINER.DROP", "orders"), 1);

  await Promise.all([redis.quit(), gathered.quit()]);
  console.log("passed");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
