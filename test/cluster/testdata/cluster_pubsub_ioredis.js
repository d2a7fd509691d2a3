// A program that subscribes with ioredis' client for clusters, and changes nothing when the leader does.
//
// Arguments: host:port of each node. It prints each message until its input ends.
const { Cluster } = require("ioredis");

const nodes = process.argv.slice(2).map((a) => ({ host: a.slice(0, a.lastIndexOf(":")), port: Number(a.slice(a.lastIndexOf(":") + 1)) }));
const r = new Cluster(nodes);
r.on("error", () => {}); // it connects again by itself
r.on("message", (channel, message) => console.log(message));
r.subscribe("news").catch((e) => {
  console.error(e);
  process.exitCode = 1;
});

process.stdin.resume();
process.stdin.on("end", () => r.disconnect());
