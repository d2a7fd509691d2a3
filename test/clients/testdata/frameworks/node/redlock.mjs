// Locks of redlock: exclusive, released by their owner only, extended, expired.
import Redis from "ioredis";
import Redlock from "redlock";
import { assert, port, until } from "./common.mjs";

const client = new Redis(port, "127.0.0.1");
const redlock = new Redlock([client], { retryCount: 0 });
const refused = (promise) => promise.then(() => assert.fail("not refused"), (err) => assert.equal(err.name, "LockError"));

const lock = await redlock.lock("lock:a", 30_000);
await refused(redlock.lock("lock:a", 30_000));
const other = await redlock.lock("lock:b", 30_000);
await lock.extend(60_000);
assert.ok((await client.pttl("lock:a")) > 30_000);
await lock.unlock();
await refused(lock.unlock());

const late = await redlock.lock("lock:a", 200);
const next = await until("the lock expires", () => redlock.lock("lock:a", 30_000).catch(() => null));
await refused(late.extend(1000));
await refused(late.unlock());
await refused(redlock.lock("lock:a", 30_000)); // the late owner has not released the next one's
await next.unlock();
await other.unlock();

// several resources are locked together or not at all
const both = await redlock.lock(["lock:x", "lock:y"], 30_000);
await refused(redlock.lock(["lock:y", "lock:z"], 30_000));
assert.equal(await client.exists("lock:z"), 0);
await both.unlock();
assert.equal(await client.exists("lock:x", "lock:y"), 0);

// those that wait get the lock one after the other
const patient = new Redlock([client], { retryCount: 100, retryDelay: 10 });
let inside = 0, most = 0;
await Promise.all(Array.from({ length: 5 }, async () => {
  const mine = await patient.lock("lock:c", 30_000);
  most = Math.max(most, ++inside);
  await new Promise((resolve) => setTimeout(resolve, 5));
  inside--;
  await mine.unlock();
}));
assert.equal(most, 1);
