// A program that uses ioredis with a cluster and with Sentinel, and changes nothing when the leader does.
//
// Arguments: milliseconds between two writes, host:port of each node. Both clients write a number and read it back. Each time it
// prints which of them, cluster or sentinel, and the number, or the error, until its input ends.
const { Cluster, Redis } = require("ioredis");

const pause = Number(process.argv[2]);
const nodes = process.argv.slice(3).map((a) => ({ host: a.slice(0, a.lastIndexOf(":")), port: Number(a.slice(a.lastIndexOf(":") + 1)) }));

let ended = false;
process.stdin.resume();
process.stdin.on("end", () => (ended = true));

async function work(kind, r) {
  r.on("error", () => {}); // the calls report them
  for (let n = 1; !ended; n++) {
    try {
      await r.set("node-" + kind, n);
      const got = Number(await r.get("node-" + kind));
      console.log(kind, got === n ? `ok ${n}` : `wrong ${n} is ${got}`);
    } catch (e) {
      console.log(kind, `error ${e.name}: ${e.message}`.replace(/\n/g, " "));
    }
    await new Promise((done) => setTimeout(done, pause));
  }
  r.disconnect();
}

work("cluster", new Cluster(nodes));
work("sentinel", new Redis({ sentinels: nodes, name: "mymaster" }));
