// Uses a mayfly on the port given as argument through node-redis, in the ways its users do: in RESP2,
// and where the library knows it in RESP3.

const assert = require("node:assert/strict");
const { isDeepStrictEqual } = require("node:util");
const { createClient, createClientPool, ErrorReply, WatchError } = require("redis");
const { version } = require("redis/package.json");

const major = Number(version.split(".")[0]);
const options = {
  socket: { port: Number(process.argv[2]), host: "127.0.0.1", reconnectStrategy: false },
  password: "secret",
};

async function connect(more) {
  const client = createClient({ ...options, ...more });
  client.on("error", (error) => assert.fail(error));
  await client.connect();
  return client;
}

// until waits for a promise that some event fulfils.
function until() {
  let fulfil;
  const promise = new Promise((resolve) => (fulfil = resolve));
  return { promise, fulfil };
}

async function strings(redis) {
  assert.equal(await redis.set("k", "v"), "OK");
  assert.equal(await redis.get("k"), "v");
  assert.equal(await redis.get("nobody"), null);
  assert.equal(await redis.set("k", "w", { NX: true }), null);
  assert.equal(await redis.set("k", "w", { EX: 100, GET: true }), "v");
  assert.ok((await redis.ttl("k")) > 70);
  assert.equal(await redis.mSet({ a: "1", b: "ü" }), "OK");
  assert.deepEqual(await redis.mGet(["a", "nobody", "b"]), ["1", null, "ü"]);
  assert.equal(await redis.incrBy("a", 41), 42);
  assert.equal(await redis.incrByFloat("a", 0.5), "42.5");
  assert.equal(await redis.append("b", "!"), 3);
  assert.equal(await redis.getRange("b", -1, -1), "!");
  assert.equal(await redis.getDel("b"), "ü!");
  assert.equal(await redis.getEx("k", { PX: 50000 }), "w");
  assert.equal(await redis.exists(["a", "b", "k"]), 2);
  assert.equal(await redis.copy("k", "copy"), major > 4 ? 1 : true);
  assert.equal(await redis.type("copy"), "string");
  assert.equal(await redis.del(["a", "b", "copy"]), 2);
  assert.equal(await redis.persist("k"), major > 4 ? 1 : true);
  assert.equal(await redis.pTTL("k"), -1);
  assert.equal(await redis.expire("k", 10, "GT"), major > 4 ? 0 : false);
  assert.equal(await redis.ttl("nobody"), -2);
  assert.deepEqual(await redis.lcs("k", "k"), "w");
}

async function bytes(redis) {
  const everything = Buffer.from(Array.from({ length: 256 }, (_, n) => n));
  await redis.set(everything, everything);
  const read = major > 4
    ? await redis.withTypeMapping({ 36: Buffer }).get(everything) // 36 is $, a bulk string
    : await redis.get(require("redis").commandOptions({ returnBuffers: true }), everything);
  assert.deepEqual(read, everything);
  assert.equal(await redis.del(everything), 1);
}

async function pipelines(redis) {
  assert.equal(await redis.flushDb(), "OK");
  // What is called in one turn of the event loop goes out as one pipeline.
  const calls = Array.from({ length: 1000 }, (_, n) => redis.set(`key:${n}`, String(n)));
  const last = [redis.incr("key:1"), redis.get("nobody")];
  assert.deepEqual(new Set(await Promise.all(calls)), new Set(["OK"]));
  assert.deepEqual(await Promise.all(last), [2, null]);
  const settled = await Promise.allSettled([redis.get("key:2"), redis.sendCommand(["NO.SUCH", "x"]), redis.get("key:3")]);
  assert.deepEqual([settled[0].value, settled[2].value], ["2", "3"]);
  assert.equal(settled[1].reason.message, "ERR unknown command 'NO.SUCH', with args beginning with: 'x' ");
  assert.equal(await redis.dbSize(), 1000);
  const found = new Set();
  for await (const keys of redis.scanIterator({ MATCH: "key:*", COUNT: 100 })) {
    for (const key of [keys].flat()) found.add(key); // of version 4 one key a time
  }
  assert.equal(found.size, 1000);
  const all = await redis.multi().get("key:5").incr("key:6").execAsPipeline();
  assert.deepEqual(all, ["5", 7]);
}

async function transactions(redis, other) {
  assert.deepEqual(await redis.multi().set("a", "1").incr("a").get("nobody").exec(), ["OK", 2, null]);
  await redis.watch("a");
  await other.set("a", "meanwhile");
  await assert.rejects(redis.multi().set("a", "watched").exec(), WatchError);
  await redis.watch("a");
  assert.deepEqual(await redis.multi().getDel("a").exec(), ["meanwhile"]);
  await redis.set("text", "abc");
  // A command that fails in EXEC leaves the others' work.
  await assert.rejects(redis.multi().incr("text").set("b", "1").exec(), /1 commands failed|not an integer/);
  assert.equal(await redis.get("b"), "1");
  await assert.rejects(redis.multi().set("c", "1").addCommand(["NO.SUCH"]).exec(), /unknown command|EXECABORT/);
  assert.equal(await redis.exists("c"), 0);
}

async function messages(redis) {
  const subscriber = redis.duplicate();
  subscriber.on("error", (error) => assert.fail(error));
  await subscriber.connect();
  const toChannel = until(), toPattern = until(), toShard = until(), death = until();
  await subscriber.subscribe("news", (message, channel) => toChannel.fulfil([message, channel]));
  await subscriber.pSubscribe("n?ws*", (message, channel) => toPattern.fulfil([message, channel]));
  await subscriber.sSubscribe("shard", (message, channel) => toShard.fulfil([message, channel]));
  await subscriber.subscribe("__keyevent@4__:del", (message) => death.fulfil(message));
  await redis.configSet("notify-keyspace-events", "KEA");
  assert.equal(await redis.publish("news", "thé"), 2);
  assert.equal(await redis.sPublish("shard", "x"), 1);
  assert.deepEqual(await toChannel.promise, ["thé", "news"]);
  assert.deepEqual(await toPattern.promise, ["thé", "news"]);
  assert.deepEqual(await toShard.promise, ["x", "shard"]);
  await redis.set("mortal", "1");
  await redis.del("mortal");
  assert.equal(await death.promise, "mortal");
  assert.equal((await redis.pubSubNumSub(["news"])).news, 1);
  await subscriber.unsubscribe("news");
  await subscriber.pUnsubscribe("n?ws*");
  await subscriber.sUnsubscribe("shard");
  await subscriber.unsubscribe("__keyevent@4__:del");
  assert.equal(await redis.publish("news", "nobody"), 0);
  assert.equal(String(await subscriber.ping()), "PONG"); // of version 4 a Buffer
  await subscriber.disconnect();
}

async function server(redis, resp) {
  assert.equal(await redis.clientGetName(), "node");
  const me = await redis.clientInfo();
  assert.deepEqual([me.name, Number(me.db), me.user], ["node", 4, "default"]);
  assert.match(await redis.sendCommand(["CLIENT", "INFO"]), new RegExp(` resp=${resp} lib-name=.* lib-ver=.`));
  assert.match(await redis.info("server"), /redis_version:7\./);
  assert.deepEqual({ ...(await redis.configGet("appendfsync")) }, { appendfsync: "everysec" });
  assert.equal(await redis.echo("hallo"), "hallo");
  assert.ok((await redis.commandCount()) > 100);
  assert.equal((await redis.commandInfo(["get", "doc.put"]))[1].name, "doc.put");
  assert.ok((await redis.memoryUsage("text")) > 0);
  assert.equal(await redis.objectEncoding("text"), "embstr");
}

async function errors(redis) {
  await assert.rejects(redis.incr("text"), (error) => error instanceof ErrorReply &&
    error.message === "ERR value is not an integer or out of range");
  await assert.rejects(redis.pfAdd("a", "b"), /^(Simple)?Error: ERR unknown command 'PFADD', /);
  await assert.rejects(redis.sendCommand(["GET"]), /ERR wrong number of arguments for 'get' command/);
  const stranger = createClient({ ...options, password: "wrong" });
  stranger.on("error", () => {}); // told by the promise, too
  await assert.rejects(stranger.connect(), /WRONGPASS/);
}

async function documents(redis) {
  const order = JSON.stringify({ item: "thé", price: 1.5, ttl: 60 });
  assert.equal(await redis.sendCommand(["CONTAINER.SET", "orders", "TTL", "3600"]), "OK");
  assert.equal(await redis.sendCommand(["DOC.PUT", "orders", "1", order]), "OK");
  assert.equal(await redis.sendCommand(["DOC.GET", "orders", "1"]), order);
  assert.ok((await redis.sendCommand(["DOC.TTL", "orders", "1"])) > 30);
  assert.equal(await redis.sendCommand(["DOC.PUT", "orders", "1", "{}", "NX"]), null);
  assert.equal(await redis.sendCommand(["DOC.PATCH", "orders", "1", "INCR", "/price", "1"]), "OK");
  assert.equal(await redis.sendCommand(["DOC.GET", "orders", "1", "PATH", "/price"]), "2.5");
  assert.deepEqual(await redis.sendCommand(["DOC.MGET", "orders", "1", "2"]), [order.replace("1.5", "2.5"), null]);
  assert.deepEqual(await redis.sendCommand(["DOC.SCAN", "orders", "0"]), ["0", ["1"]]);
  const meta = await redis.sendCommand(["DOC.META", "orders", "1"]); // a map in RESP3
  assert.equal(Array.isArray(meta) ? meta[meta.indexOf("source") + 1] : meta.source, "document");
  await assert.rejects(redis.sendCommand(["DOC.PUT", "orders", "1", '{"ttl":0}']), /invalid ttl 0: legal are/);
  assert.deepEqual(await redis.multi().addCommand(["DOC.TOUCH", "orders", "1"]).addCommand(["DOC.COUNT", "orders"]).exec(), [1, 1]);
  assert.equal(await redis.sendCommand(["CONTAINER.DROP", "orders"]), 1);
}

// Typed methods for JSON.
async function json(redis) {
  const j = redis.json, at = (path) => (major > 4 ? { path } : path);
  const tea = { item: "thé", price: 2, tags: ["hot"], stock: { full: true, n: null } };
  assert.equal(await j.set("tea", "$", tea), "OK");
  assert.equal(await j.set("tea", "$", {}, major > 4 ? { condition: "NX" } : { NX: true }), null);
  assert.deepEqual(await j.get("tea"), tea);
  assert.deepEqual(await j.get("tea", { path: "$.price" }), [2]);
  assert.deepEqual(await j.get("tea", { path: ["$.price", "$.item"] }), { "$.price": [2], "$.item": ["thé"] });
  assert.equal(await j.get("none"), null);
  assert.deepEqual(await j.mGet(["tea", "none"], "$.price"), [[2], null]);
  assert.deepEqual(await j.type("tea", at("$.tags")), ["array"]);
  assert.deepEqual(await j.numIncrBy("tea", "$.price", 0.5), [2.5]);
  assert.deepEqual(await j.numMultBy("tea", "$.price", 2), [5]);
  assert.deepEqual(await (major > 4 ? j.strAppend("tea", " vert", { path: "$.item" }) : j.strAppend("tea", "$.item", " vert")), [9]);
  assert.deepEqual(await j.strLen("tea", at("$.item")), [9]);
  assert.deepEqual(await j.arrAppend("tea", "$.tags", "sweet", { of: "Assam" }), [3]);
  assert.deepEqual(await j.arrIndex("tea", "$.tags", "sweet"), [1]);
  assert.deepEqual(await j.arrInsert("tea", "$.tags", 0, "new"), [4]);
  assert.deepEqual(await j.arrLen("tea", at("$.tags")), [4]);
  assert.deepEqual(await j.arrPop("tea", at("$.tags")), [{ of: "Assam" }]);
  assert.deepEqual(await j.arrTrim("tea", "$.tags", 0, 0), [1]);
  assert.deepEqual(await j.objKeys("tea", at("$.stock")), [["full", "n"]]);
  assert.deepEqual(await j.objLen("tea", at("$.stock")), [2]);
  const toggled = await (major > 4 ? j.toggle("tea", "$.stock.full") : redis.sendCommand(["JSON.TOGGLE", "tea", "$.stock.full"]));
  assert.deepEqual(toggled.map(Number), [0]);
  assert.equal(await j.merge("tea", "$.stock", { n: 5, full: null }), "OK");
  assert.equal(await j.mSet([{ key: "tea", path: "$.price", value: 1 }, { key: "cup", path: "$", value: [] }]), "OK");
  assert.equal(await (major > 4 ? j.clear("tea", { path: "$.tags" }) : redis.sendCommand(["JSON.CLEAR", "tea", "$.tags"])), 1);
  assert.ok((await j.debugMemory("tea")) > 0);
  assert.deepEqual(await j.get("tea"), { item: "thé vert", price: 1, tags: [], stock: { n: 5 } });
  assert.equal(await j.del("tea", at("$.stock")), 1);
  assert.equal(await j.forget("cup"), 1);
  await assert.rejects(j.numIncrBy("none", "$.a", 1), /doesn't exist/);
  assert.equal(await redis.type("tea"), "ReJSON-RL");
  assert.equal(await j.del("tea"), 1);
}

// caching reads through caches of clients: what others change, what dies, and what a change of a whole database
// ends or brings back is seen, also after the connection breaks. What does not change is read once.
async function caching(other) {
  const cache = { ttl: 0, maxEntries: 0 };
  const settings = { ...options, name: "caching", database: 4, RESP: 3, socket: { ...options.socket, reconnectStrategy: 5 }, clientSideCache: cache };
  const alone = createClient(settings);
  const pool = createClientPool(settings, { minimum: 2 });
  for (const cached of [alone, pool]) {
    cached.on("error", () => {}); // of the connection that is broken below
    await cached.connect();
    const eventually = async (read, want) => {
      for (const end = Date.now() + 30000; ; await new Promise((r) => setTimeout(r, 5))) {
        const got = await read().catch((error) => error);
        if (isDeepStrictEqual(got, want)) return;
        if (Date.now() > end) assert.fail(`the cache has ${JSON.stringify(got)}, not ${JSON.stringify(want)}`);
      }
    };
    const value = (want) => eventually(() => cached.get("cached"), want);
    await other.set("cached", "1");
    await value("1");
    await other.set("cached", "2");
    await value("2");
    await other.set("cached", "3", { PX: 50 });
    await value(null);
    await other.mSet({ cached: "4", more: "5" });
    await eventually(() => cached.mGet(["cached", "more"]), ["4", "5"]);
    await other.set("more", "6");
    await eventually(() => cached.mGet(["cached", "more"]), ["4", "6"]);
    await other.json.set("document", "$", { n: 1 });
    await eventually(() => cached.json.get("document"), { n: 1 });
    await other.json.numIncrBy("document", "$.n", 1);
    await eventually(() => cached.json.get("document"), { n: 2 });
    await value("4");
    await other.sendCommand(["CONTAINER.SET", "4", "TTL", "1"]);
    await value(null);
    await other.sendCommand(["CONTAINER.UNDO", "4"]);
    await value("4");
    await other.sendCommand(["SWAPDB", "4", "5"]);
    await value(null);
    await other.sendCommand(["SWAPDB", "4", "5"]);
    await value("4");
    await other.flushDb();
    await value(null);
    await other.set("cached", "7");
    await value("7");
    await other.sendCommand(["CLIENT", "KILL", "NAME", "caching"]);
    await other.set("cached", "8");
    await value("8");
    await other.sendCommand(["CONFIG", "RESETSTAT"]);
    for (let n = 0; n < 10; n++) await value("8");
    const reads = /cmdstat_get:calls=(\d+)/.exec(await other.info("commandstats"))?.[1] ?? 0;
    assert.ok(reads <= 1, `${reads} reads of a key that does not change`);
    await cached.close();
  }
}

async function main() {
  for (const resp of major > 4 ? [2, 3] : [2]) {
    const settings = { name: "node", database: 4, ...(major > 4 && { RESP: resp }) };
    const redis = await connect(settings), other = await connect(settings);
    assert.equal(await redis.ping(), "PONG");
    await redis.flushDb();
    await strings(redis);
    await bytes(redis);
    await pipelines(redis);
    await transactions(redis, other);
    await server(redis, resp);
    await messages(redis);
    await errors(redis);
    await documents(redis);
    await json(redis);
    if (resp === 3) await caching(other);
    await Promise.all([redis.quit(), other.quit()]);
  }
  console.log("passed");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
