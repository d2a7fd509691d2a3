// Runs programs beside this one, after the port of a server, one after the other. They share what they load.
import { connect } from "./common.mjs";

const client = await connect();
for (const program of process.argv.slice(3)) {
  await client.flushAll();
  await import(`./${program}`);
  console.log(`${program} passed`);
}
process.exit(0); // open connections do not keep it
