// A program that uses ioredis with a cluster, and changes nothing when the leader does.
//
// Arguments: cluster or sentinel, and host:port of each node. It writes a number and reads it back; it prints the number each
// time, or the error, until its input ends.
const { Cluster, Redis } = require("ioredis");

const [kind, ...addresses] = process.argv.slice(2);
const nodes = addresses.map((a) => ({ host: a.slice(0, a.lastIndexOf(":")), port: Number(a.slice(a.lastIndexOf(":") + 1)) }));
const r = kind === "cluster" ? new Cluster(nodes) : new Redis({ sentinels: nodes, name: "mymaster" });
r.on("error", () => {}); // the calls report them

let ended = false;
process.stdin.resume();
process.stdin.on("end", () => (ended = true));

(async () => {
  for (let n = 1; !ended; n++) {
    try {
      await r.set("node-" + kind, n);
      const got = Number(await r.get("node-" + kind));
      console.log(got === n ? `ok ${n}` : `wrong ${n} is ${got}`);
    } catch (e) {
      console.log(`error ${e.name}: ${e.message}`.replace(/\n/g, " "));
    }
    await new Promise((done) => setTimeout(done, 20));
  }
  r.disconnect();
})();
