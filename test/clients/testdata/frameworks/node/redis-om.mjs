// Entities of redis-om as JSON and as hashes: saved, fetched, changed, expired, removed. There is no search.
import { createRequire } from "node:module";
import { EntityId, Repository, Schema } from "redis-om";
import { assert, until, url } from "./common.mjs";

// redis-om works with version 4 of node-redis, which it brings along.
const { createClient } = createRequire(createRequire(import.meta.url).resolve("redis-om"))("redis");
const client = createClient({ url });
await client.connect();

const schema = new Schema("album", {
  artist: { type: "string" },
  title: { type: "text" },
  year: { type: "number" },
  genres: { type: "string[]" },
  outOfPrint: { type: "boolean" },
  seen: { type: "date" },
  place: { type: "point" },
}, { dataStructure: "JSON" });
const albums = new Repository(schema, client);
const album = {
  artist: "Mushroomhead", title: "The Righteous & The Butterfly", year: 2014, genres: ["metal", "é☂"], outOfPrint: true,
  seen: new Date("2026-01-02T03:04:05Z"), place: { longitude: 12.5, latitude: -41.25 }, label: { name: "Megaforce" },
};
const saved = await albums.save(album);
const id = saved[EntityId];
assert.equal(await client.type(`album:${id}`), "ReJSON-RL");
const fetched = await albums.fetch(id);
assert.deepEqual({ ...fetched }, { ...saved });
assert.equal(fetched.seen.getTime(), album.seen.getTime());
assert.deepEqual(fetched.label, { name: "Megaforce" });

fetched.year = 2015;
fetched.title = null;
await albums.save(fetched);
const changed = await albums.fetch(id);
assert.equal(changed.year, 2015);
assert.equal(changed.title, null);

await albums.save("named", { artist: "Ann" });
const two = await albums.fetch("named", id);
assert.deepEqual(two.map((each) => each.artist), ["Ann", "Mushroomhead"]);

await albums.expire("named", 60); // the member ttl says so: it is read and saved as any other
assert.equal((await albums.fetch("named")).ttl, 60);
await albums.expire("named", 1);
await until("the entity expires", async () => (await client.exists("album:named")) === 0);
assert.equal((await albums.fetch("named")).artist, undefined);
await albums.remove(id);
assert.equal(await client.exists(`album:${id}`), 0);

const cards = new Repository(new Schema("card", {
  name: { type: "string" }, visits: { type: "number" }, tags: { type: "string[]" },
}, { dataStructure: "HASH" }), client);
const card = await cards.save("ann", { name: "Ann", visits: 7, tags: ["a", "b"] });
assert.equal(await client.type("card:ann"), "hash");
assert.deepEqual({ ...(await cards.fetch("ann")) }, { ...card });
card.visits = null;
await cards.save(card);
const without = await cards.fetch("ann");
assert.equal(without.name, "Ann");
assert.equal("visits" in without, false);
await cards.expire("ann", 1);
await until("the entity expires", async () => (await client.exists("card:ann")) === 0);

await assert.rejects(albums.createIndex(), /unknown command/);
await assert.rejects(albums.search().where("year").equals(2014).return.all(), /unknown command/);
