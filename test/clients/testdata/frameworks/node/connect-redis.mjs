// Sessions of express-session: stored, read, listed, expired, destroyed.
import http from "node:http";
import session from "express-session";
import { RedisStore } from "connect-redis";
import { assert, connect, until } from "./common.mjs";

const client = await connect();
const store = new RedisStore({ client, prefix: "sess:" });
const middleware = session({
  store,
  secret: "secret",
  resave: false,
  saveUninitialized: false,
  cookie: { maxAge: 60_000 },
});
const server = http.createServer((req, res) =>
  middleware(req, res, () => {
    if (req.url === "/leave") return req.session.destroy(() => res.end("left"));
    if (req.url === "/brief") req.session.cookie.maxAge = 1000;
    req.session.visits = (req.session.visits ?? 0) + 1;
    res.end(String(req.session.visits));
  }),
);
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

/** Requests a page, and returns its text and the cookie that is valid from then on. */
async function visit(path, cookie) {
  const reply = await fetch(`http://127.0.0.1:${server.address().port}${path}`, { headers: cookie ? { cookie } : {} });
  return [await reply.text(), reply.headers.get("set-cookie")?.split(";")[0] ?? cookie];
}

let [text, ann] = await visit("/");
assert.equal(text, "1");
assert.equal((await visit("/", ann))[0], "2");
let [other, bob] = await visit("/");
assert.equal(other, "1");
assert.equal(await store.length(), 2);
assert.deepEqual((await store.all()).map((s) => s.visits).sort(), [1, 2]);

const id = decodeURIComponent(ann).match(/s:([^.]+)\./)[1];
const left = await client.ttl("sess:" + id);
assert.ok(left > 30 && left <= 60, `TTL ${left}`);

assert.equal((await visit("/leave", bob))[0], "left");
assert.deepEqual(await store.ids(), [id]);
assert.equal((await visit("/", bob))[0], "1", "a destroyed session begins anew");

assert.equal((await visit("/brief", ann))[0], "3");
await until("the session expires", async () => (await store.get(id)) === null);
assert.equal((await visit("/", ann))[0], "1", "an expired session begins anew");

await store.clear();
assert.equal(await store.length(), 0);
