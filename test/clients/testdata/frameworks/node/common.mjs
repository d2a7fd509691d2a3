// What the scripts beside this one share. run.mjs runs them.
import assert from "node:assert/strict";
import { createClient } from "redis";

export { assert };
export const port = Number(process.argv[2]);
export const url = `redis://127.0.0.1:${port}`;

/** Polls until check returns something true, and returns that. Fails after 30 s. */
export async function until(what, check) {
  for (const end = Date.now() + 30_000; Date.now() < end; ) {
    const got = await check();
    if (got) return got;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.fail(`waited in vain: ${what}`);
}

/** Returns a connected node-redis client. */
export async function connect() {
  return createClient({ url }).connect();
}
